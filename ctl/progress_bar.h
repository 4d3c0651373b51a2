// SPDX-License-Identifier: Apache-2.0
// The progress of a transfer: one line on standard error, redrawn at most ten times per second. Prints nothing if standard error
// is not a terminal.
#pragma once

#include <chrono>
#include <string>

namespace coracle::ctl {

std::string decimal_bytes(double bytes);  // "12.3MB", in powers of 1000

class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  void show(double done, double total);  // in bytes; `total` is 0 if unknown
  void end();                            // erases the line

 private:
  std::string what_;
  bool shown_, drawn_any_ = false;
  std::chrono::steady_clock::time_point started_, drawn_{};
};

}  // namespace coracle::ctl
