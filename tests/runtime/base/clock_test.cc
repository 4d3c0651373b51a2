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
  for (const char* text :
       {"", "2024", "2024-13-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00",
        "2024-01-01T00:00:00Zx", "2024-01-01T00:00:00.Z", "9999-01-01T00:00:00Z", "1600-01-01T00:00:00Z",
        "2024-01-01 00:00:00Z", "-024-01-01T00:00:00Z", "2024-01-01T00:00:00+1"})
    EXPECT_FALSE(parse_time(text)) << text;
}

}  // namespace
}  // namespace coracle
