// SPDX-License-Identifier: Apache-2.0
// Random numbers.
#include "runtime/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <vector>

namespace coracle {
namespace {

TEST(Random, fills_all_of_it_and_never_twice_alike) {
  std::set<std::array<uint8_t, 16>> seen;
  for (int i = 0; i < 1000; ++i) {
    std::array<uint8_t, 16> bytes{};
    fill_random(bytes);
    EXPECT_TRUE(seen.insert(bytes).second);
  }
  std::array<int, 16> not_zero{};
  for (const auto& bytes : seen)
    for (size_t i = 0; i < bytes.size(); ++i) not_zero[i] += bytes[i] != 0;
  for (int count : not_zero) EXPECT_GT(count, 900);
}

TEST(Random, drawn_bytes_are_never_twice_alike_by_several_threads) {
  std::array<std::vector<std::array<uint8_t, 24>>, 4> drawn;  // 24 does not divide the reserve
  {
    std::vector<std::jthread> threads;
    for (auto& mine : drawn)
      threads.emplace_back([&mine] {
        for (int i = 0; i < 1000; ++i) draw_random(mine.emplace_back());
      });
  }
  std::set<std::array<uint8_t, 24>> seen;
  for (const auto& each : drawn)
    for (const auto& bytes : each) EXPECT_TRUE(seen.insert(bytes).second);
}

TEST(Random, as_many_bytes_are_drawn_as_are_fetched_at_a_time) {
  std::array<uint8_t, kRandomBytesMax> one{}, other{};
  draw_random(one), draw_random(other);
  EXPECT_NE(one, other);
  EXPECT_GT(std::count_if(one.begin(), one.end(), [](uint8_t byte) { return byte != 0; }), 200);
}

TEST(Random, more_than_are_fetched_at_a_time_end_the_process) {
  std::vector<uint8_t> bytes(kRandomBytesMax + 1);
  EXPECT_DEATH(draw_random(bytes), "");
  EXPECT_DEATH(fill_random(bytes), "");
}

TEST(Random, a_draw_after_forgetting_repeats_nothing) {
  std::array<uint8_t, 16> before{}, after{};
  draw_random(before);
  forget_fetched_random();
  draw_random(after);
  EXPECT_NE(before, after);
}

TEST(Random, numbers_stay_below_their_bound_and_reach_each) {
  EXPECT_EQ(random_below(0), 0u);
  EXPECT_EQ(random_below(1), 0u);
  std::array<int, 27> counts{};
  for (int i = 0; i < 27'000; ++i) ++counts.at(random_below(27));
  for (int count : counts) EXPECT_NEAR(count, 1000, 250);  // eight standard deviations
}

}  // namespace
}  // namespace coracle
