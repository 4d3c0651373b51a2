// SPDX-License-Identifier: Apache-2.0
// Behaviour of the time texts.
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
  for (const char* text : {"", "2024", "2024-13-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z",
                           "2024-01-01T00:00:00", "2024-01-01T00:00:00Zx", "2024-01-01T00:00:00.Z", "9999-01-01T00:00:00Z",
                           "1600-01-01T00:00:00Z", "2024-01-01 00:00:00Z", "-024-01-01T00:00:00Z", "2024-01-01T00:00:00+1"})
    EXPECT_FALSE(parse_time(text)) << text;
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
