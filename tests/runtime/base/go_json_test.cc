// SPDX-License-Identifier: Apache-2.0
// JSON that Go reads and the standard does not allow.
#include "runtime/base/go_json.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

constexpr size_t kMax = 1000;

TEST(GoJson, replaces_what_is_no_unicode) {
  struct Row {
    const char *text, *want;
  };
  for (const Row& row : {
           Row{R"("a\ud83d\ude00b")", "a\U0001f600b"},
           Row{R"("\ud83d\ud83d\ude00")", "\ufffd\U0001f600"},
           Row{R"("\ud83d")", "\ufffd"},
           Row{R"("\ude00\u0041")", "\ufffdA"},
           Row{R"("\\ud83d\ud83d")", "\\ud83d\ufffd"},
           Row{"\"\xf0\x9f\x98\"", "\ufffd\ufffd\ufffd"},
           Row{"\"\xff\u00e9\u20ac\U0001f600\xc3\"", "\ufffd\u00e9\u20ac\U0001f600\ufffd"},
       })
    EXPECT_EQ(MUST(parse_json_as_go(row.text, kMax)), json::value(row.want)) << row.text;
  EXPECT_FALSE(parse_json(R"("\ud83d")")) << "elsewhere it is an error";
}

TEST(GoJson, fails_like_the_standard_otherwise) {
  for (const char* text : {"\xff", "{\"a\":1}\xff", R"("\ud83)", "\"\\", "\"\\u12", "[1,"})
    EXPECT_EQ(parse_json_as_go(text, kMax).error().text(), parse_json(text).error().text()) << text;
}

TEST(GoJson, replaces_within_a_limit_and_only_what_has_to_be_replaced) {
  const std::string flawed = "\"" + std::string(300, '\xff') + "\"";
  EXPECT_EQ(MUST(parse_json_as_go(flawed, 902)).get_string().size(), 900u);
  EXPECT_EQ(parse_json_as_go(flawed, 901).error().code(), Code::too_large);
  const std::string wrong = "[" + std::string(2000, ' ');
  EXPECT_EQ(parse_json_as_go(wrong, kMax).error().text(), parse_json(wrong).error().text()) << "no copy, no limit";
}

}  // namespace
}  // namespace coracle
