// SPDX-License-Identifier: Apache-2.0
// Schedules of CronJobs with time zones: fields, names, and days when clocks change.
#include "store/schema/schedule.h"

#include <gtest/gtest.h>

namespace coracle::schema {
namespace {

TimeZone zone_of(const char* name) { return MUST(TimeZone::find(name)); }

std::string next(const char* schedule, const char* after, const char* zone = "UTC") {
  TimeZone in = zone_of(zone);
  auto found = MUST(Schedule::parse(schedule)).next(MUST(parse_time(after)), in);
  return found ? in.format(*found) : "never";
}

TEST(Schedule, the_next_time_that_fits) {
  struct Row {
    const char *schedule, *after, *want;
  };
  for (const Row& row : {
           Row{"* * * * *", "2024-03-01T10:00:00Z", "2024-03-01T10:01:00Z"},
           Row{"* * * * *", "2024-03-01T10:00:59Z", "2024-03-01T10:01:00Z"},
           Row{"*/15 * * * *", "2024-03-01T10:44:00Z", "2024-03-01T10:45:00Z"},
           Row{"5/20 * * * *", "2024-03-01T10:26:00Z", "2024-03-01T10:45:00Z"},
           Row{"20-35/15 * * * *", "2024-03-01T10:35:00Z", "2024-03-01T11:20:00Z"},
           Row{"0 9-17 * * mon-fri", "2024-03-01T17:00:00Z", "2024-03-04T09:00:00Z"},
           Row{"30 6 1 JAN *", "2024-03-01T00:00:00Z", "2025-01-01T06:30:00Z"},
           Row{"0 0 29 2 *", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
           Row{"0 0 31 2 *", "2024-03-01T00:00:00Z", "never"},
           Row{"0 0 13 * 5", "2024-03-01T00:00:00Z", "2024-03-08T00:00:00Z"},  // the 13th or a Friday
           Row{"0 0 13 * *", "2024-03-01T00:00:00Z", "2024-03-13T00:00:00Z"},
           Row{"0 0 */2 * 5", "2024-03-02T00:00:00Z", "2024-03-03T00:00:00Z"},  // a step is not the wildcard
           Row{"0 0 */1 * 5", "2024-03-02T00:00:00Z", "2024-03-08T00:00:00Z"},  // a step of one is
           Row{"0 0 ? * 5", "2024-03-02T00:00:00Z", "2024-03-08T00:00:00Z"},
           Row{"0,30 1,2 * * *", "2024-03-01T02:30:00Z", "2024-03-02T01:00:00Z"},
           Row{"@hourly", "2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z"},
           Row{"@daily", "2024-03-01T10:00:00Z", "2024-03-02T00:00:00Z"},
           Row{"@weekly", "2024-03-01T10:00:00Z", "2024-03-03T00:00:00Z"},
           Row{"@monthly", "2024-03-01T10:00:00Z", "2024-04-01T00:00:00Z"},
           Row{"@yearly", "2024-03-01T10:00:00Z", "2025-01-01T00:00:00Z"},
           Row{"@every 1h30m", "2024-03-01T10:00:07Z", "2024-03-01T11:30:07Z"},
           Row{"@every 1.5s", "2024-03-01T10:00:07Z", "2024-03-01T10:00:08Z"},
           Row{"@every 1ms", "2024-03-01T10:00:07Z", "2024-03-01T10:00:08Z"},
       })
    EXPECT_EQ(next(row.schedule, row.after), row.want) << row.schedule << " after " << row.after;
}

// As in robfig/cron: a time that the clock skips is left out that day, a time that occurs twice runs twice, and a schedule that
// runs all the time continues.
TEST(Schedule, days_when_clocks_change) {
  struct Row {
    const char *name, *schedule, *zone, *after, *want;
  };
  for (const Row& row : {
           Row{"skipped: not that day", "30 2 * * *", "America/New_York", "2012-03-11T05:00:00Z", "2012-03-12T02:30:00-04:00"},
           Row{"skipped: the hour after comes", "0 3 * * *", "America/New_York", "2012-03-11T05:00:00Z",
               "2012-03-11T03:00:00-04:00"},
           Row{"skipped: each hour goes on", "0 * * * *", "America/New_York", "2012-03-11T06:00:00Z",
               "2012-03-11T03:00:00-04:00"},
           Row{"repeated: first", "30 1 * * *", "America/New_York", "2012-11-04T04:00:00Z", "2012-11-04T01:30:00-04:00"},
           Row{"repeated: again", "30 1 * * *", "America/New_York", "2012-11-04T05:30:00Z", "2012-11-04T01:30:00-05:00"},
           Row{"repeated: then tomorrow", "30 1 * * *", "America/New_York", "2012-11-04T06:30:00Z", "2012-11-05T01:30:00-05:00"},
           Row{"repeated: each hour comes twice", "0 * * * *", "America/New_York", "2012-11-04T05:00:00Z",
               "2012-11-04T01:00:00-05:00"},
           Row{"the hour after comes once", "0 2 * * *", "America/New_York", "2012-11-04T06:00:00Z", "2012-11-04T02:00:00-05:00"},
           Row{"midnight is skipped: not that day", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00",
               "2018-11-05T00:00:00-02:00"},
           Row{"midnight is skipped: the day is there", "30 1 4 11 *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00",
               "2018-11-04T01:30:00-02:00"},
           Row{"half an hour is skipped", "*/20 * * * *", "Australia/Lord_Howe", "2024-10-05T15:20:00Z",
               "2024-10-06T02:40:00+11:00"},
           Row{"a day is skipped", "0 12 30,31 12 *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"},
           Row{"far beyond the database's table", "0 12 1 7 *", "Europe/Berlin", "2047-01-01T00:00:00Z",
               "2047-07-01T12:00:00+02:00"},
           Row{"half hours from UTC", "0 9 * * *", "Asia/Kolkata", "2024-01-01T00:00:00Z", "2024-01-01T09:00:00+05:30"},
       })
    EXPECT_EQ(next(row.schedule, row.after, row.zone), row.want) << row.name;
}

TEST(Schedule, the_last_time_that_has_passed) {
  struct Row {
    const char *schedule, *earliest, *now, *want;
  };
  for (const Row& row : {
           Row{"0 * * * *", "2024-03-01T10:00:00Z", "2024-03-01T10:59:59Z", ""},
           Row{"0 * * * *", "2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z", "2024-03-01T11:00:00Z"},
           Row{"0 * * * *", "2024-03-01T10:00:00Z", "2024-03-03T15:30:00Z", "2024-03-03T15:00:00Z"},
           Row{"* * * * *", "1970-01-01T00:00:00Z", "2024-03-03T15:30:30Z", "2024-03-03T15:30:00Z"},
           Row{"0 0 29 2 *", "2001-01-01T00:00:00Z", "2024-02-28T00:00:00Z", "2020-02-29T00:00:00Z"},
           Row{"0 0 1 1 *", "2024-01-01T00:00:00Z", "2023-06-01T00:00:00Z", ""},
           Row{"@every 10m", "2024-03-01T10:03:00Z", "2024-03-01T11:00:00Z", "2024-03-01T10:53:00Z"},
           Row{"@every 10m", "2024-03-01T10:03:00Z", "2024-03-01T10:12:59Z", ""},
       }) {
    auto found =
        MUST(Schedule::parse(row.schedule)).last(MUST(parse_time(row.earliest)), MUST(parse_time(row.now)), zone_of("UTC"));
    EXPECT_EQ(found ? format_time(*found) : "", row.want) << row.schedule << " " << row.now;
  }
}

TEST(TimeZone, is_what_the_database_has) {
  EXPECT_EQ(TimeZone::find("Mars/Olympus").error().text(), "unknown time zone Mars/Olympus");
  EXPECT_FALSE(TimeZone::find("Europe"));     // a directory
  EXPECT_FALSE(TimeZone::find("tzdata.zi"));  // not a zone file
  EXPECT_TRUE(TimeZone::find("Europe/Berlin"));
  EXPECT_TRUE(TimeZone::find("UTC"));
}

TEST(TimeZone, without_a_database_there_is_utc) {
  ::setenv("TZDIR", "/nowhere", 1);
  EXPECT_TRUE(TimeZone::find("UTC"));
  EXPECT_EQ(TimeZone::find("Asia/Tokyo").error().text(),
            "unknown time zone Asia/Tokyo (this machine has no time zone database: install tzdata)");
  ::unsetenv("TZDIR");
  EXPECT_TRUE(TimeZone::find("Asia/Tokyo")) << "what was not there is not remembered";
}

}  // namespace
}  // namespace coracle::schema
