// SPDX-License-Identifier: Apache-2.0
// Conversion of cpu shares to weights, by value.
#include "runtime/base/cpu_weight.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(CpuWeight, goes_through_the_least_the_default_and_the_most) {
  const std::pair<uint64_t, uint64_t> rows[] = {{0, 0},          {1, 1},          {2, 1},          {10, 4},
                                                {102, 17},       {512, 59},       {1024, 100},     {2048, 174},
                                                {262143, 10000}, {262144, 10000}, {1 << 30, 10000}};
  for (auto [shares, weight] : rows) EXPECT_EQ(weight_of_shares(shares), weight) << shares;
  uint64_t last = 0;
  for (uint64_t shares = 1; shares < 300000; shares += 7) {  // the weight never falls as shares rise
    EXPECT_GE(weight_of_shares(shares), last);
    last = weight_of_shares(shares);
  }
}

}  // namespace
}  // namespace coracle
