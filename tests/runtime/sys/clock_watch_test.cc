// SPDX-License-Identifier: Apache-2.0
// ClockWatch, with the machine's clock, which is set a nanosecond forward.
#include "runtime/sys/clock_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/timex.h>

#include "runtime/sys/file.h"

namespace coracle::sys {
namespace {

// Not to a time that was read before: who is interrupted meanwhile would set it back, for all other tests too.
bool set_clock() {
  timex change{};
  change.modes = ADJ_SETOFFSET | ADJ_NANO;
  change.time.tv_usec = 1;  // nanoseconds
  return ::adjtimex(&change) >= 0;
}

TEST(ClockWatch, hears_each_time_that_the_clock_is_set) {
  // Whoever else sets the clock would be heard: this test of another build, and tests/e2e/jobs.sh. Each has this directory's
  // lock.
  Fd alone = MUST(open_directory("/tmp"));
  ASSERT_EQ(::flock(alone.get(), LOCK_EX), 0);
  ClockWatch watch = MUST(ClockWatch::open());
  pollfd on{watch.fd().get(), POLLIN, 0};
  EXPECT_EQ(::poll(&on, 1, 0), 0);
  EXPECT_FALSE(watch.was_set());
  if (!set_clock()) GTEST_SKIP() << "the clock may not be set here";
  for (int times = 0; times < 3; ++times) {
    EXPECT_EQ(::poll(&on, 1, 60'000), 1) << times;
    EXPECT_TRUE(watch.was_set()) << times;
    EXPECT_FALSE(watch.was_set()) << times;
    ASSERT_TRUE(set_clock());
  }
}

}  // namespace
}  // namespace coracle::sys
