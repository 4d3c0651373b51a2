// SPDX-License-Identifier: Apache-2.0
// See time_zone.h.
#include "store/schema/time_zone.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace coracle::schema {

Result<TimeZone> TimeZone::find(const std::string& name) {
  if (name == "UTC") return TimeZone(absl::UTCTimeZone());
  const char* set = std::getenv("TZDIR");
  std::filesystem::path database = set ? set : "/usr/share/zoneinfo";
  std::error_code failed;
  absl::TimeZone zone;
  // Abseil caches failed lookups for ever, so it is only called for files that exist.
  bool there = std::filesystem::is_regular_file(database / name, failed);
  if (there && absl::LoadTimeZone(name, &zone)) return TimeZone(zone);
  bool any = std::filesystem::exists(database, failed);
  return Error(Code::invalid,
               "unknown time zone " + name + (any ? "" : " (this machine has no time zone database: install tzdata)"));
}

TimeZone TimeZone::local() { return TimeZone(absl::LocalTimeZone()); }

std::chrono::seconds TimeZone::offset(WallTime time) const {
  return std::chrono::seconds(zone_.At(absl::FromChrono(time)).offset);
}

WallTime TimeZone::begin_of(std::chrono::year_month_day day) const {
  absl::CivilSecond midnight(int(day.year()), int(unsigned(day.month())), int(unsigned(day.day())), 0, 0, 0);
  absl::TimeZone::TimeInfo found = zone_.At(midnight);
  return absl::ToChronoTime(found.kind == absl::TimeZone::TimeInfo::SKIPPED ? found.trans : found.pre);
}

std::string TimeZone::format(WallTime time) const {
  std::chrono::seconds east = offset(time);
  std::string text = format_time(time + east);
  if (east.count() == 0) return text;
  text.pop_back();  // the Z
  char tail[8];
  long minutes = std::labs(long(east.count())) / 60;
  std::snprintf(tail, sizeof tail, "%c%02ld:%02ld", east.count() < 0 ? '-' : '+', minutes / 60 % 24, minutes % 60);
  return text + tail;
}

}  // namespace coracle::schema
