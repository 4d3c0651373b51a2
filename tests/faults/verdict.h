// SPDX-License-Identifier: Apache-2.0
// The results of all faults, grouped by process and call, printed as TAP; and the table type of the calls that may fail without
// failing the command, each with the reason.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/faults/tracer.h"

namespace coracle::faults {

struct Harmless {  // patterns as in the shell
  const char* process;
  const char* call;
  const char* detail;
  const char* why;
};

struct Trial {
  Fault fault;
  bool is_reached = true;
  bool has_failed = false;  // the command failed and reported it
  std::string said;         // its line
  std::string problem;      // the error; "" = none
};

// Checks the message of a command in which a call failed with `error`. "" = correct.
std::string wrong_with_line(const std::string& said, int error);

class Verdict {
 public:
  // `log`: the file for all trials; "" = none.
  Verdict(std::string name, const std::vector<Harmless>& table, const std::string& log);
  ~Verdict();
  void add(Trial trial);
  void say(bool good, const std::string& what);  // one line of its own
  int finish();                                  // prints the results and returns the exit status

 private:
  struct Group {
    int trials = 0, failed = 0, harmless = 0, unreached = 0;
    std::vector<std::string> problems;
  };
  const Harmless* harmless(const Call& call) const;

  std::string name_;
  const std::vector<Harmless>& table_;
  std::map<std::string, Group> groups_;
  std::FILE* log_ = nullptr;
  int number_ = 0, bad_ = 0, trials_ = 0, failed_ = 0, harmless_ = 0, unreached_ = 0;
};

// The calls that are tried: all, or a part of each kind, the same ones in every run.
std::vector<Fault> choose(const std::vector<Call>& calls, int at_most_of_a_kind);

}  // namespace coracle::faults
