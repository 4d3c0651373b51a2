// SPDX-License-Identifier: Apache-2.0
// Trace: the log of a scenario, to analyse a failure. It is off while thousands of scenarios run; the failing one is run again.
#pragma once

#include <cstdio>
#include <string>

namespace coracle::simulation {

class Trace {
 public:
  explicit Trace(std::FILE* to) : to_(to) {}  // nullptr: off
  bool on() const { return to_ != nullptr; }
  void say(const std::string& line) const {
    if (to_) std::fprintf(to_, "%s\n", line.c_str());
  }

 private:
  std::FILE* to_;
};

}  // namespace coracle::simulation
