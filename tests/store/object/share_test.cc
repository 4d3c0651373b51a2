// SPDX-License-Identifier: Apache-2.0
// Shares: plain numbers, and percentages with the requested rounding.
#include "store/object/share.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(Share, is_a_number_or_a_percentage) {
  struct Row {
    json::value share;
    int64_t total, up, down;
  };
  for (const Row& row : {Row{3, 10, 3, 3}, Row{uint64_t(3), 10, 3, 3}, Row{0, 10, 0, 0}, Row{"25%", 10, 3, 2},
                         Row{"50%", 10, 5, 5}, Row{"100%", 3, 3, 3}, Row{"0%", 3, 0, 0}, Row{"1%", 1, 1, 0}, Row{"25%", 0, 0, 0},
                         Row{"3", 10, 7, 7}, Row{"9223372036854775807%", 10, INT32_MAX / 10 + 1, INT32_MAX / 10},
                         Row{"99999999999999999999%", INT32_MAX, INT32_MAX, INT32_MAX}, Row{"99999999999999999999x%", 10, 7, 7},
                         Row{"x%", 10, 7, 7}, Row{"%", 10, 7, 7}, Row{nullptr, 10, 7, 7}, Row{true, 10, 7, 7}}) {
    EXPECT_EQ(scaled(&row.share, row.total, true, 7), row.up) << row.share;
    EXPECT_EQ(scaled(&row.share, row.total, false, 7), row.down) << row.share;
  }
  EXPECT_EQ(scaled(nullptr, 10, true), 0);
  EXPECT_EQ(scaled(nullptr, 10, true, 4), 4);
}

}  // namespace
}  // namespace coracle
