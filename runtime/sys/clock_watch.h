// SPDX-License-Identifier: Apache-2.0
// ClockWatch: notices when the wall clock is set (by NTP after a start without a clock battery, or by an administrator). Code
// that waits for a wall time with a steady timer must then check again. Source: timerfd_create(2), TFD_TIMER_CANCEL_ON_SET.
#pragma once

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

class ClockWatch {
 public:
  static Result<ClockWatch> open();     // Errors: errno's
  const Fd& fd() const { return fd_; }  // readable after the clock was set; slewing does not count
  // True if the clock was set since the last call. Does not block.
  bool was_set();

 private:
  explicit ClockWatch(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace coracle::sys
