// SPDX-License-Identifier: Apache-2.0
// Quantity: parsing, formatting, rounding and limits.
#include "store/object/quantity.h"

#include <gtest/gtest.h>

#include <limits>

namespace coracle {
namespace {

TEST(Quantity, is_written_in_canonical_form) {
  struct Row {
    const char *text, *want;
  };
  for (const Row& row : {
           Row{"0", "0"},
           Row{"0Ki", "0"},
           Row{"-0m", "0"},
           Row{"100m", "100m"},
           Row{"1000m", "1"},
           Row{"0.5", "500m"},
           Row{".5", "500m"},
           Row{"5.", "5"},
           Row{"+1", "1"},
           Row{"-1500m", "-1500m"},
           Row{"1024", "1024"},
           Row{"1Ki", "1Ki"},
           Row{"1024Ki", "1Mi"},
           Row{"1.5Gi", "1536Mi"},
           Row{"0.5Ki", "512"},
           Row{"0.1Ki", "102400m"},
           Row{"1025Ki", "1025Ki"},
           Row{"1e3", "1e3"},
           Row{"12e6", "12e6"},
           Row{"1E3", "1e3"},
           Row{"1e1", "10"},
           Row{"1.1e3", "1100"},
           Row{"1e-3", "1e-3"},
           Row{"9E", "9E"},
           Row{"1000000k", "1G"},
           Row{"1n", "1n"},
           Row{"0.1n", "1n"},
           Row{"1.1n", "2n"},
           Row{"-0.1n", "-1n"},
           Row{"1e-20", "1e-9"},
           Row{"00.50", "500m"},
           Row{"9223372036854775807", "9223372036854775807"},
           Row{"9223372036854775808", "9223372036854775807"},
           Row{"1e999999", "9223372036854775807"},
           Row{"16Ei", "9223372036854775807"},
           Row{"1000000000000000000000000000000e-25", "100e3"},
           Row{"0.0000000009765625Ki", "1u"},
       }) {
    auto got = Quantity::parse(row.text);
    ASSERT_TRUE(got) << row.text << ": " << got.error().text();
    EXPECT_EQ(got->text(), row.want) << row.text;
    EXPECT_EQ(*Quantity::parse(got->text()), *got) << row.text;
  }
}

TEST(Quantity, refuses_what_is_none) {
  for (const char* text : {"",    " ",    "1 Ki", "Ki", ".",   "-",     "+",     "1.2.3", "1KB", "1kb", "1K",
                           "1ki", "0x10", "1e",   "e3", "1e+", "1e+-3", "1e3Ki", "--1",   "1,5", "NaN", "1Kii"}) {
    auto got = Quantity::parse(text);
    EXPECT_FALSE(got) << text;
    if (!got) {
      EXPECT_EQ(got.error().code(), Code::invalid);
    }
  }
  EXPECT_FALSE(Quantity::parse(std::string(1000, '1')));
}

TEST(Quantity, rounds_up_to_units) {
  EXPECT_EQ(Quantity::parse("100m")->millicores(), Millicores(100));
  EXPECT_EQ(Quantity::parse("1.5")->millicores(), Millicores(1500));
  EXPECT_EQ(Quantity::parse("0.1m")->millicores(), Millicores(1));
  EXPECT_EQ(Quantity::parse("1500m")->value(), 2);
  EXPECT_EQ(Quantity::parse("-1500m")->value(), -1);
  EXPECT_EQ(Quantity::parse("128Mi")->bytes(), 128_MiB);
  EXPECT_EQ(Quantity::parse("8Ei")->milli_value(), std::numeric_limits<int64_t>::max());
}

TEST(Quantity, compares_and_adds_by_amount) {
  EXPECT_EQ(*Quantity::parse("1"), *Quantity::parse("1000m"));
  EXPECT_LT(*Quantity::parse("1M"), *Quantity::parse("1Mi"));
  Quantity sum;
  sum += *Quantity::parse("512Mi");
  sum += *Quantity::parse("0.5Gi");
  EXPECT_EQ(sum.text(), "1Gi");
  sum -= *Quantity::parse("2Gi");
  EXPECT_TRUE(sum.negative());
  EXPECT_EQ(sum.text(), "-1Gi");
}

TEST(Quantity, reads_json_and_makes_text) {
  EXPECT_EQ(Quantity::from_json(json::value(0.5))->text(), "500m");
  EXPECT_EQ(Quantity::from_json(json::value(2))->text(), "2");
  EXPECT_EQ(Quantity::from_json(json::value(" 1Gi "))->text(), "1Gi");
  EXPECT_FALSE(Quantity::from_json(json::value(true)));
  EXPECT_EQ(Quantity::of(64_MiB).text(), "64Mi");
  EXPECT_EQ(Quantity::of(Millicores(250)).text(), "250m");
  EXPECT_EQ(Quantity::of_count(110).text(), "110");
}

TEST(Quantity, is_found_in_a_resource_list) {
  json::value amounts = *parse_json(R"({"cpu":"500m","pods":3,"memory":"much"})");
  EXPECT_EQ(amount_in(amounts.get_object(), "cpu")->text(), "500m");
  EXPECT_EQ(amount_in(amounts.get_object(), "pods")->text(), "3");
  EXPECT_FALSE(amount_in(amounts.get_object(), "memory")) << "no quantity";
  EXPECT_FALSE(amount_in(amounts.get_object(), "storage")) << "not in the list";
}

// Amounts have a whole and a fractional part; sums carry from one to the other, through 0 and at the limits.
TEST(Quantity, sums_carry) {
  struct Row {
    const char *left, *right, *sum, *difference;
  };
  for (const Row& row : {
           Row{"999999999n", "1n", "1", "999999998n"},
           Row{"1500m", "600m", "2100m", "900m"},
           Row{"1", "1500m", "2500m", "-500m"},
           Row{"-1500m", "600m", "-900m", "-2100m"},
           Row{"-600m", "1500m", "900m", "-2100m"},
           Row{"-600m", "-1500m", "-2100m", "900m"},
           Row{"2", "2", "4", "0"},
           Row{"0", "-1n", "-1n", "1n"},
           Row{"9223372036854775807", "1n", "9223372036854775807", "9223372036854775806999999999n"},
           Row{"9223372036854775807", "9223372036854775807", "9223372036854775807", "0"},
           Row{"-9223372036854775807", "1", "-9223372036854775806", "-9223372036854775807"},
       }) {
    Quantity left = MUST(Quantity::parse(row.left)), right = MUST(Quantity::parse(row.right)), sum = left, difference = left;
    sum += right;
    difference -= right;
    EXPECT_EQ(sum.text(), row.sum) << row.left << " + " << row.right;
    EXPECT_EQ(difference.text(), row.difference) << row.left << " - " << row.right;
    EXPECT_EQ(difference.is_zero(), left == right);
    EXPECT_EQ(difference.negative(), left < right);
  }
}

}  // namespace
}  // namespace coracle
