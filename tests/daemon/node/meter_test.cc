// SPDX-License-Identifier: Apache-2.0
// Rates from samples: which earlier sample is used, who waits for a second one, what is remembered.
#include "daemon/node/meter.h"

#include <gtest/gtest.h>

namespace coracle::node {
namespace {

using namespace std::chrono_literals;

struct MeterTest : testing::Test {
  FakeClock clock;
  int waits = 0, reads = 0;
  std::chrono::nanoseconds used{0};  // value of the counter
  int64_t millicores = 0;            // usage while time passes
  bool gone = false;
  Meter meter{clock, [this](std::chrono::nanoseconds span) {
                ++waits;
                pass(span);
              }};

  void pass(std::chrono::nanoseconds span) {
    clock.advance(span);
    used += span * millicores / 1000;
  }
  Gauge gauge(std::optional<std::chrono::nanoseconds> age = std::nullopt, const std::string& id = "a") {
    return {id, age, [this]() -> Result<Reading> {
              ++reads;
              if (gone) return Error(Code::not_found, "gone");
              return Reading{used, Bytes(4096)};
            }};
  }
  std::optional<Sample> ask(std::optional<std::chrono::nanoseconds> age = std::nullopt) {
    auto all = meter.measure({gauge(age)});
    auto found = all.find("a");
    return found == all.end() ? std::nullopt : std::optional(found->second);
  }
};

TEST_F(MeterTest, takes_a_short_window_of_what_it_has_never_seen) {
  millicores = 250;
  pass(1h);
  auto sample = ask();
  ASSERT_TRUE(sample);
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(sample->window, Meter::kWindowMin);
  EXPECT_EQ(sample->nanocores, 250'000'000);
  EXPECT_EQ(sample->memory, Bytes(4096));
  EXPECT_EQ(sample->at, clock.now());
}

TEST_F(MeterTest, goes_on_from_the_look_of_the_last_request_without_waiting) {
  (void)ask();
  millicores = 2000;
  pass(15s);
  auto sample = ask();
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(sample->window, 15s);
  EXPECT_EQ(sample->nanocores, 2'000'000'000);
}

TEST_F(MeterTest, an_old_look_is_forgotten) {
  millicores = 1000;
  (void)ask();
  pass(Meter::kWindowMax + 1s);
  millicores = 10;
  auto sample = ask();
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(sample->window, Meter::kWindowMin);
  EXPECT_EQ(sample->nanocores, 10'000'000);
}

TEST_F(MeterTest, who_asks_again_at_once_is_given_the_sample_of_before) {
  auto first = ask();
  int before = reads;
  pass(Meter::kFresh - 1s);
  auto again = ask();
  EXPECT_EQ(reads, before);
  EXPECT_EQ(again->at, first->at);
  pass(2s);
  EXPECT_GT(ask()->at, first->at);
}

TEST_F(MeterTest, what_began_lately_has_stood_at_zero) {
  millicores = 500;
  pass(20s);
  auto sample = ask(20s);
  EXPECT_EQ(waits, 0);
  EXPECT_EQ(sample->window, 20s);
  EXPECT_EQ(sample->nanocores, 500'000'000);
}

TEST_F(MeterTest, a_beginning_that_is_too_near_or_too_far_does_not_count) {
  for (auto age :
       {std::chrono::nanoseconds(10ms), std::chrono::nanoseconds(Meter::kWindowMax + 1s), std::chrono::nanoseconds(-5s)}) {
    pass(2 * Meter::kWindowMax);
    int before = waits;
    EXPECT_EQ(ask(age)->window, Meter::kWindowMin);
    EXPECT_EQ(waits, before + 1);
  }
}

TEST_F(MeterTest, all_who_lack_an_earlier_look_wait_together) {
  auto all = meter.measure({gauge(std::nullopt, "a"), gauge(std::nullopt, "b"), gauge(20s, "c")});
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(waits, 1);
}

TEST_F(MeterTest, what_cannot_be_read_is_not_told_and_not_waited_for) {
  gone = true;
  EXPECT_FALSE(ask());
  EXPECT_EQ(waits, 0);
  gone = false;
  (void)ask();
  pass(15s);
  gone = true;
  EXPECT_FALSE(ask());
}

TEST_F(MeterTest, a_counter_never_runs_backwards) {
  used = 10s;
  (void)ask();
  pass(15s);
  used = 1s;
  EXPECT_EQ(ask()->nanocores, 0);
}

}  // namespace
}  // namespace coracle::node
