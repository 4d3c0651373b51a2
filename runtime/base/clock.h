// SPDX-License-Identifier: Apache-2.0
// Clock: where time comes from, so that tests can turn it. Wall time may jump (boards without a clock battery); what
// measures a span uses steady time. Timestamps are RFC 3339 in UTC.
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

class FakeClock : public Clock {  // for tests: one thread turns it, any may look
 public:
  explicit FakeClock(WallTime start = WallTime(std::chrono::seconds(1'700'000'000))) : start_(start) {}
  WallTime now() const override { return start_.load() + std::chrono::duration_cast<WallTime::duration>(passed_.load()); }
  SteadyTime steady() const override { return SteadyTime(std::chrono::duration_cast<SteadyTime::duration>(passed_.load())); }
  void advance(std::chrono::nanoseconds span) { passed_ = passed_.load() + span; }
  // As a person or NTP does: the wall shows another time, and none has passed.
  void set(WallTime to) { start_ = start_.load() + (to - now()); }

 private:
  std::atomic<WallTime> start_;
  std::atomic<std::chrono::nanoseconds> passed_{std::chrono::nanoseconds(0)};
};

std::string format_time(WallTime time);        // 2006-01-02T15:04:05Z        (metav1.Time)
std::string format_micro_time(WallTime time);  // 2006-01-02T15:04:05.000000Z (metav1.MicroTime)
std::string format_nano_time(WallTime time);   // 2006-01-02T15:04:05.000000000Z (CRI log lines)

// "1h30m0s", "15.004s", "250ms", "0s", as Go writes durations (metav1.Duration).
std::string format_duration(std::chrono::nanoseconds span);
// Accepts what Go does: signed numbers with units, fractions too. Errors: invalid.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// Accepts RFC 3339 with an optional fraction and any offset, years 1678 to 2261. Errors: invalid.
Result<WallTime> parse_time(std::string_view text);

}  // namespace coracle
