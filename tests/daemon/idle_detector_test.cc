// SPDX-License-Identifier: Apache-2.0
// When the daemon releases memory: after work, once more a little later, and not after negligible work.
#include "daemon/idle_detector.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

struct IdleDetectorTest : testing::Test {
  IdleDetector detector;
  uint64_t done = 0;
  // One check after so much more work: "rest", "look" or "rest look" and the seconds until the next check, "" without one.
  std::string look(uint64_t more) {
    IdleDetector::Verdict verdict = detector.look(done += more);
    std::string text = verdict.rest ? "rest" : "";
    if (verdict.look_again)
      text += (text.empty() ? "" : " ") + std::string("look ") + std::to_string(verdict.look_again->count());
    return text;
  }
};

TEST_F(IdleDetectorTest, comes_when_the_work_is_over_and_once_more_when_the_threads_have_gone) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(look(5000), "look 2");
  EXPECT_EQ(look(3), "look 2");
  EXPECT_EQ(look(2), "rest look 25");
  EXPECT_EQ(look(5), "rest");
  EXPECT_EQ(look(1), "look 2") << "somebody asked for something";
  EXPECT_EQ(look(0), "") << "that was not worth a rest";
}

TEST_F(IdleDetectorTest, small_work_adds_up) {
  int rests = 0;
  for (int i = 0; i < 30; ++i) {  // like a client with two requests a minute
    std::string first = look(2), second = look(0);
    rests += first.starts_with("rest") + second.starts_with("rest");
  }
  EXPECT_EQ(rests, 2) << "one, and its repetition";
}

TEST_F(IdleDetectorTest, comes_between_clients_that_leave_no_pause) {
  EXPECT_EQ(look(100'000), "look 2");
  int looks = 0;
  while (look(100) == "look 2") ASSERT_LT(++looks, 100);
  EXPECT_EQ(looks + 1, IdleDetector::kLooksMax);
  EXPECT_EQ(look(1250), "look 2") << "the repetition is a look like another when there is work again";
}

TEST_F(IdleDetectorTest, does_not_come_under_load) {
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(look(1000), "look 2");
}

TEST_F(IdleDetectorTest, counts_what_was_done_while_nobody_looked) {
  EXPECT_FALSE(detector.is_overdue(999));
  EXPECT_TRUE(detector.is_overdue(1000));
  EXPECT_EQ(look(1000), "look 2");
  EXPECT_EQ(look(0), "look 2");
  EXPECT_EQ(look(0), "rest look 25");
  EXPECT_FALSE(detector.is_overdue(done + 999));
}

}  // namespace
}  // namespace coracle
