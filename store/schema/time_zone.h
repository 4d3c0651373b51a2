// SPDX-License-Identifier: Apache-2.0
// TimeZone: local time by the machine's time zone database (Debian's tzdata), with Abseil. Abseil only reads the requested zone,
// supports the rules beyond the last listed year, and does not throw.
#pragma once

#include <absl/time/time.h>

#include <chrono>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace coracle::schema {

class TimeZone {
 public:
  // Finds a zone by its IANA name; "UTC" needs no database. Reads a file the first time. Errors: invalid, in Kubernetes' wording.
  static Result<TimeZone> find(const std::string& name);
  static TimeZone local();  // the machine's zone

  std::chrono::seconds offset(WallTime time) const;  // east of UTC
  // The start of a day: midnight, or the first moment after it if midnight is skipped.
  WallTime begin_of(std::chrono::year_month_day day) const;
  std::string format(WallTime time) const;  // RFC 3339 with the zone's offset; "Z" for UTC

 private:
  explicit TimeZone(absl::TimeZone zone) : zone_(zone) {}
  absl::TimeZone zone_;
};

}  // namespace coracle::schema
