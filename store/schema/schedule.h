// SPDX-License-Identifier: Apache-2.0
// Schedule: the run times of a CronJob. Pure. Source: crontab(5); robfig/cron, with its error texts (as in Kubernetes) and its
// behaviour at daylight-saving changes: a skipped time does not run on that day, and a repeated time runs twice.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "store/schema/time_zone.h"

namespace coracle::schema {

class Schedule {
 public:
  // Five fields (minute, hour, day of the month, month, day of the week), "@hourly" and the like, or "@every 90m".
  // Errors: invalid.
  static Result<Schedule> parse(std::string_view text);

  // The first matching time after `after`. Nothing if there is none within five years ("0 0 31 2 *").
  std::optional<WallTime> next(WallTime after, const TimeZone& zone) const;
  // The last matching time after `earliest` and not after `now`. Nothing if there is none.
  std::optional<WallTime> last(WallTime earliest, WallTime now, const TimeZone& zone) const;

 private:
  struct Field {
    uint64_t fits = 0;        // one bit per value
    bool everything = false;  // written as * or ?
    bool has(unsigned value) const { return fits >> value & 1; }
  };
  friend class ScheduleReader;
  bool day_fits(std::chrono::sys_days day) const;
  Field minute_, hour_, day_, month_, weekday_;
  std::chrono::seconds every_{0};  // for "@every", instead of the fields
};

}  // namespace coracle::schema
