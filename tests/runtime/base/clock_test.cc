// SPDX-License-Identifier: Apache-2.0
// Formatting and parsing of times.
#include "runtime/base/clock.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(Clock, times_go_to_text_and_back) {
  WallTime time = *parse_time("2026-02-28T23:59:59.123456789Z");
  EXPECT_EQ(format_time(time), "2026-02-28T23:59:59Z");
  EXPECT_EQ(format_micro_time(time), "2026-02-28T23:59:59.123456Z");
  EXPECT_EQ(format_nano_time(time), "2026-02-28T23:59:59.123456789Z");
}

TEST(Clock, reads_offsets_and_times_before_the_epoch) {
  EXPECT_EQ(*parse_time("2024-01-01T02:30:00+02:30"), *parse_time("2024-01-01T00:00:00Z"));
  EXPECT_EQ(format_time(*parse_time("1969-12-31T23:59:59Z")), "1969-12-31T23:59:59Z");
}

TEST(Clock, refuses_what_is_no_time) {
  for (const char* text :
       {"", "2024", "2024-13-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00",
        "2024-01-01T00:00:00Zx", "2024-01-01T00:00:00.Z", "0000-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00", "2024-01-01 00:00:00Z", "-024-01-01T00:00:00Z", "2024-01-01T00:00:00+1"})
    EXPECT_FALSE(parse_time(text)) << text;
}

TEST(Clock, times_of_all_years_go_to_text_and_back) {
  for (const char* text : {"0001-01-01T00:00:00Z", "0001-01-01T00:00:02Z", "0999-02-28T12:00:00Z", "1600-02-29T00:00:00Z",
                           "1677-09-21T00:12:43Z", "2262-04-11T23:47:17Z", "9999-12-31T23:59:59Z"}) {
    auto time = parse_calendar_time(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(format_time(*time), text);
  }
  EXPECT_EQ(format_micro_time(*parse_calendar_time("9999-12-31T23:59:59.999999999Z")), "9999-12-31T23:59:59.999999Z");
  EXPECT_TRUE(is_go_zero_time(*parse_calendar_time("0001-01-01T01:00:00+01:00")));
  EXPECT_FALSE(is_go_zero_time(*parse_calendar_time("0001-01-01T00:00:00.1Z")));
}

TEST(Clock, times_to_reckon_with_are_bounded) {
  for (const char* text : {"0001-01-01T00:00:02Z", "1700-01-01T00:00:00Z", "1930-01-01T00:00:00Z"})
    EXPECT_EQ(*parse_time(text), kParsedTimeMin) << text;
  for (const char* text : {"2200-01-01T00:00:00Z", "2261-01-01T00:00:00Z", "9999-12-31T23:59:59Z"})
    EXPECT_EQ(*parse_time(text), kParsedTimeMax) << text;
  EXPECT_EQ(format_time(kParsedTimeMin), "1930-01-01T00:00:00Z");
  EXPECT_EQ(format_time(kParsedTimeMax), "2200-01-01T00:00:00Z");
  EXPECT_EQ(format_time(kParsedTimeMax - (kParsedTimeMax - kParsedTimeMin)), "1930-01-01T00:00:00Z") << "spans fit";
  EXPECT_EQ(format_time(kParsedTimeMax + bounded_seconds(INT64_MAX)).substr(0, 4), "2259");
  EXPECT_EQ(format_time(kParsedTimeMin + bounded_seconds(INT64_MIN)).substr(0, 4), "1870");
  EXPECT_EQ(bounded_seconds(3600), std::chrono::hours(1));
}

TEST(Clock, durations_go_to_text_as_go_writes_them_and_back) {
  using namespace std::chrono_literals;
  struct Row {
    std::chrono::nanoseconds span;
    const char* text;
  };
  for (const Row& row :
       {Row{0s, "0s"}, Row{1s, "1s"}, Row{15004ms, "15.004s"}, Row{250ms, "250ms"}, Row{1500us, "1.5ms"}, Row{90s, "1m30s"},
        Row{3600s, "1h0m0s"}, Row{5432100ms, "1h30m32.1s"}, Row{-90s, "-1m30s"}, Row{7ns, "7ns"}}) {
    EXPECT_EQ(format_duration(row.span), row.text);
    EXPECT_EQ(*parse_duration(row.text), row.span) << row.text;
  }
  EXPECT_EQ(*parse_duration("1.5h"), 90min);
  EXPECT_EQ(*parse_duration("0"), 0s);
  for (const char* text : {"", "-", "1", "s", "1x", "1 s", "--1s", "1s-1s", "nan", "300000000h"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

}  // namespace
}  // namespace coracle
