// SPDX-License-Identifier: Apache-2.0
// What a stop may take: work that ends in time goes on, work that hangs does not keep the process.
#include "daemon/stop_limit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <latch>

namespace coracle {
namespace {

using std::chrono::milliseconds;

TEST(StopLimit, does_nothing_to_work_that_ends_in_time) {
  std::atomic<int> calls = 0;
  for (int i = 0; i < 100; ++i) StopLimit limit(std::chrono::hours(1), [&] { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST(StopLimit, tells_of_work_that_does_not_end) {
  std::atomic<int> calls = 0;
  {
    std::latch told(1);
    StopLimit limit(milliseconds(1), [&] {
      ++calls;
      told.count_down();
    });
    told.wait();
  }
  EXPECT_EQ(calls, 1);
}

TEST(StopLimitDeathTest, ends_a_process_whose_work_hangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        StopLimit limit(milliseconds(1), [] { std::_Exit(7); });
        std::latch(1).wait();
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace coracle
