// SPDX-License-Identifier: Apache-2.0
// ClockWatch, with the machine's clock, which is set to its current time.
#include "runtime/sys/clock_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <ctime>

namespace coracle::sys {
namespace {

bool set_clock_to_itself() {
  timespec now{};
  return ::clock_gettime(CLOCK_REALTIME, &now) == 0 && ::clock_settime(CLOCK_REALTIME, &now) == 0;
}

TEST(ClockWatch, hears_each_time_that_the_clock_is_set) {
  ClockWatch watch = MUST(ClockWatch::open());
  pollfd on{watch.fd().get(), POLLIN, 0};
  EXPECT_EQ(::poll(&on, 1, 0), 0);
  EXPECT_FALSE(watch.was_set());
  if (!set_clock_to_itself()) GTEST_SKIP() << "the clock may not be set here";
  for (int times = 0; times < 3; ++times) {
    EXPECT_EQ(::poll(&on, 1, 5000), 1) << times;
    EXPECT_TRUE(watch.was_set()) << times;
    EXPECT_FALSE(watch.was_set()) << times;
    ASSERT_TRUE(set_clock_to_itself());
  }
}

}  // namespace
}  // namespace coracle::sys
