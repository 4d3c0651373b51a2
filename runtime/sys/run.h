// SPDX-License-Identifier: Apache-2.0
// Running a program to its end: with a text on its input, for so long at most. Source: posix_spawn(3), pidfd_open(2).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::sys {

struct RunSpec {
  std::string path;               // not looked up in PATH
  std::vector<std::string> argv;  // argv[0] too; empty = the path
  std::vector<std::string> env;   // NAME=value, all of it
  std::string input;              // on descriptor 0; 1 and 2 are ours
  std::string directory;          // where it begins; "" = where we are
  std::optional<std::chrono::seconds> timeout;
  std::stop_token stop = {};
};
// Blocks. Its exit code, 128 + signal. Errors: what exec said; timeout and cancelled, and it was killed.
Result<int> run(const RunSpec& spec);
struct Heard {
  int exit_code = 0;  // 128 + signal
  std::string text;   // what it wrote to descriptors 1 and 2, its end left out beyond 64 KiB
};
Result<Heard> run_and_hear(const RunSpec& spec);  // the same; the text of an error ends with what it wrote until then
// Where a program of this name is in PATH, or where Debian's are for the administrator; "" when there is none.
std::string find_program(const std::string& name);
enum class Complaints : uint8_t { shown, dropped };  // what a program writes to its descriptor 2
// What a program of PATH prints, when it succeeds; it gets no input. Blocks. Errors: not_found; internal, with its exit code.
Result<std::string> output_of(const std::vector<std::string>& argv, Complaints complaints = Complaints::shown);

}  // namespace coracle::sys
