// SPDX-License-Identifier: Apache-2.0
// A set of numbers as runs: whatever is added and removed in whatever order, it finds the same as a set that is walked.
#include "store/kinds/service/server/number_runs.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace coracle::kinds {
namespace {

TEST(NumberRuns, joins_and_divides_runs) {
  NumberRuns runs;
  EXPECT_EQ(runs.lowest_free(7), 7);
  for (int number : {7, 9, 10, 8}) runs.add(number);  // 8 joins both sides
  EXPECT_EQ(runs.lowest_free(6), 6);
  for (int from : {7, 8, 9, 10, 11}) EXPECT_EQ(runs.lowest_free(from), 11) << from;
  runs.add(9), runs.remove(11);  // nothing changes
  EXPECT_EQ(runs.lowest_free(7), 11);
  runs.remove(9);
  EXPECT_EQ(runs.lowest_free(7), 9);
  EXPECT_EQ(runs.lowest_free(10), 11);
  runs.remove(7), runs.remove(10), runs.remove(8);
  EXPECT_TRUE(runs.empty());
}

TEST(NumberRuns, finds_what_a_walk_finds) {
  constexpr int64_t kSeed = 33, kNumbers = 60, kSteps = 20'000;
  std::mt19937 random(kSeed);
  std::set<int64_t> plain;
  NumberRuns runs;
  for (int64_t step = 0; step < kSteps; step++) {
    int64_t number = int64_t(random() % kNumbers);
    bool adds = random() % 100 < (step / 1000 % 2 ? 70 : 30);  // by turns it fills and empties
    if (adds) plain.insert(number), runs.add(number);
    else plain.erase(number), runs.remove(number);
    int64_t from = int64_t(random() % kNumbers), walked = from;
    while (plain.contains(walked)) walked++;
    ASSERT_EQ(runs.lowest_free(from), walked) << "step " << step;
    ASSERT_EQ(runs.empty(), plain.empty());
  }
}

}  // namespace
}  // namespace coracle::kinds
