// SPDX-License-Identifier: Apache-2.0
// JSON that Go reads and the standard does not allow.
#include "runtime/base/go_json.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

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
       })
    EXPECT_EQ(MUST(parse_json_as_go(row.text)), json::value(row.want)) << row.text;
  EXPECT_FALSE(parse_json(R"("\ud83d")")) << "elsewhere it is an error";
}

TEST(GoJson, fails_like_the_standard_otherwise) {
  for (const char* text : {"\xff", "{\"a\":1}\xff", R"("\ud83)", "\"\\", "\"\\u12", "[1,"})
    EXPECT_EQ(parse_json_as_go(text).error().text(), parse_json(text).error().text()) << text;
}

}  // namespace
}  // namespace coracle
