// SPDX-License-Identifier: Apache-2.0
// How far a transfer of bytes is, for people: one line on standard error, redrawn at most ten times a second. Nothing where that
// is no terminal.
#pragma once

#include <chrono>
#include <string>

namespace coracle::ctl {

std::string decimal_bytes(double bytes);  // "12.3MB", as people read sizes of downloads

class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  void show(double done, double total);  // bytes; `total` 0: not known
  void end();                            // the line goes

 private:
  std::string what_;
  bool shown_, drawn_any_ = false;
  std::chrono::steady_clock::time_point started_, drawn_{};
};

}  // namespace coracle::ctl
