// SPDX-License-Identifier: Apache-2.0
// TimeZone: what the clock on the wall shows somewhere, by the machine's time zone database (Debian's tzdata), through Abseil:
// it reads the one zone that is asked for, knows the rules beyond the last listed year, and throws nothing.
#pragma once

#include <absl/time/time.h>

#include <chrono>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace coracle::schema {

class TimeZone {
 public:
  // By its IANA name; "UTC" needs no database. Reads a file the first time. Errors: invalid, in Kubernetes' words.
  static Result<TimeZone> find(const std::string& name);
  static TimeZone local();  // the machine's

  std::chrono::seconds offset(WallTime time) const;  // east of UTC
  // When a day begins: at midnight, or at the first moment after it where midnight is skipped.
  WallTime begin_of(std::chrono::year_month_day day) const;
  std::string format(WallTime time) const;  // RFC 3339 with the zone's offset; "Z" for none

 private:
  explicit TimeZone(absl::TimeZone zone) : zone_(zone) {}
  absl::TimeZone zone_;
};

}  // namespace coracle::schema
