// SPDX-License-Identifier: Apache-2.0
// ClockWatch: hears when somebody sets the wall clock: NTP after a start without a clock battery, a person. Whoever waits for a
// moment of wall time by a timer that runs steadily must look again then. Source: timerfd_create(2), TFD_TIMER_CANCEL_ON_SET.
#pragma once

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

class ClockWatch {
 public:
  static Result<ClockWatch> open();
  const Fd& fd() const { return fd_; }  // readable once the clock was set; not for a clock that is slewed
  // True: it was set since the last call. Does not block.
  bool was_set();

 private:
  explicit ClockWatch(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace coracle::sys
