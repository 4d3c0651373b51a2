// SPDX-License-Identifier: Apache-2.0
// Clock: the source of time. Tests replace it by FakeClock. Wall time can jump (boards without a clock battery), so durations are
// measured with steady time. Timestamps are RFC 3339 in UTC, years 1 to 9999: CalendarTime holds all of them. WallTime counts
// nanoseconds in 64 bits; use it for arithmetic.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle {

using WallTime = std::chrono::system_clock::time_point;
using SteadyTime = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime now() const = 0;
  virtual SteadyTime steady() const = 0;
};

const Clock& system_clock();

class FakeClock : public Clock {  // for tests: one thread advances it, any thread may read it
 public:
  explicit FakeClock(WallTime start = WallTime(std::chrono::seconds(1'700'000'000))) : start_(start) {}
  WallTime now() const override { return start_.load() + std::chrono::duration_cast<WallTime::duration>(passed_.load()); }
  SteadyTime steady() const override { return SteadyTime(std::chrono::duration_cast<SteadyTime::duration>(passed_.load())); }
  void advance(std::chrono::nanoseconds span) { passed_ = passed_.load() + span; }
  // Sets the wall clock, as an administrator or NTP does. Steady time does not change.
  void set(WallTime to) { start_ = start_.load() + (to - now()); }

 private:
  std::atomic<WallTime> start_;
  std::atomic<std::chrono::nanoseconds> passed_{std::chrono::nanoseconds(0)};
};

struct CalendarTime {
  int64_t seconds = 0;  // since 1970
  int32_t nanos = 0;    // 0 to 999,999,999
  static CalendarTime of(WallTime time);
};

// Go's time.Time{}: January 1st of the year 1.
constexpr int64_t kGoZeroTimeSeconds = -62135596800, kCalendarSecondsMax = 253402300799;  // 9999-12-31T23:59:59Z
constexpr bool is_go_zero_time(CalendarTime time) { return time.seconds == kGoZeroTimeSeconds && time.nanos == 0; }

std::string format_time(CalendarTime time);        // 2006-01-02T15:04:05Z        (metav1.Time)
std::string format_micro_time(CalendarTime time);  // 2006-01-02T15:04:05.000000Z (metav1.MicroTime)
std::string format_time(WallTime time);
std::string format_micro_time(WallTime time);
std::string format_nano_time(WallTime time);  // 2006-01-02T15:04:05.000000000Z (CRI log lines)

// A duration as Go formats it (metav1.Duration): "1h30m0s", "15.004s", "250ms", "0s".
std::string format_duration(std::chrono::nanoseconds span);
// Accepts the syntax of Go: signed numbers with units, also fractions. Errors: invalid.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// Accepts RFC 3339 with an optional fraction and any offset, years 1 to 9999 in UTC. Errors: invalid.
Result<CalendarTime> parse_calendar_time(std::string_view text);

// The bounds of the times that parse_time() returns. The difference of any two such times fits std::chrono::nanoseconds, and so
// does each of them plus or minus kSpanMax.
constexpr WallTime kParsedTimeMin{std::chrono::seconds(-1262304000)};  // 1930-01-01
constexpr WallTime kParsedTimeMax{std::chrono::seconds(7258118400)};   // 2200-01-01

// Seconds from an object's field, limited to kSpanMax in either direction, so that they can be added to or subtracted from a
// time.
constexpr std::chrono::seconds kSpanMax{60LL * 365 * 24 * 3600};
constexpr std::chrono::seconds bounded_seconds(int64_t seconds) {
  return std::chrono::seconds(seconds > kSpanMax.count()    ? kSpanMax.count()
                              : seconds < -kSpanMax.count() ? -kSpanMax.count()
                                                            : seconds);
}

// Parses the same format into a WallTime. A time beyond the bounds becomes the bound. Errors: invalid.
Result<WallTime> parse_time(std::string_view text);

}  // namespace coracle
