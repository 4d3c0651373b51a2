// SPDX-License-Identifier: Apache-2.0
// Three lines: a CronJob's schedule, a time, a time zone (UTC or Europe/Berlin). The result is an error, or a schedule whose next
// time is after the given one and whose last time is not.
#include "store/schema/schedule.h"

#include <cstdint>
#include <string_view>

#include "runtime/base/text.h"

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string_view> lines = split(std::string_view(reinterpret_cast<const char*>(data), size), '\n');
  auto schedule = schema::Schedule::parse(lines[0]);
  auto now = lines.size() > 1 ? parse_time(lines[1]) : Result<WallTime>(WallTime(std::chrono::hours(500'000)));
  bool summer = lines.size() > 2 && lines[2] == "Europe/Berlin";  // UTC on a machine without the database
  auto berlin = schema::TimeZone::find("Europe/Berlin");
  auto zone = summer && berlin ? std::move(berlin) : schema::TimeZone::find("UTC");
  if (!schedule || !now || !zone) return 0;
  if (auto next = schedule->next(*now, *zone); next && *next <= *now) __builtin_trap();
  for (auto earliest : {kParsedTimeMin, *now - std::chrono::hours(100)}) {
    auto last = earliest < *now ? schedule->last(earliest, *now, *zone) : std::nullopt;
    if (last && (*last > *now || *last <= earliest)) __builtin_trap();
  }
  return 0;
}
