// SPDX-License-Identifier: Apache-2.0
// See clock_watch.h.
#include "runtime/sys/clock_watch.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>

namespace coracle::sys {

namespace {

// Far in the future, but small enough that an interposed library (libfaketime in tests) can still add to it. Times of 32 bits
// (Debian 12 on armhf) end in 2038: a year before.
constexpr int64_t kLast32 = std::numeric_limits<int32_t>::max(), kYear = 366 * 86400;
constexpr time_t kNever = time_t(sizeof(time_t) > sizeof(int32_t) ? kLast32 * 100 : kLast32 - kYear);

}  // namespace

// A timer that never expires and is cancelled when the wall clock is set.
Result<ClockWatch> ClockWatch::open() {
  Fd fd(::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd) return Error::from_errno("timerfd");
  itimerspec never{};
  never.it_value.tv_sec = kNever;
  if (::timerfd_settime(fd.get(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr) != 0)
    return Error::from_errno("watch the clock");
  return ClockWatch(std::move(fd));
}

bool ClockWatch::was_set() {
  uint64_t count;
  return ::read(fd_.get(), &count, sizeof count) < 0 && errno == ECANCELED;  // the timer stays armed
}

}  // namespace coracle::sys
