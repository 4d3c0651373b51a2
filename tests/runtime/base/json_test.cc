// SPDX-License-Identifier: Apache-2.0
// Behaviour of the JSON wall.
#include "runtime/base/json.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(Json, names_the_place_of_an_error) {
  auto failed = parse_json("{\n  \"a\": 1,\n  oops\n}");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::bad_request);
  EXPECT_NE(failed.error().text().find("line 3"), std::string::npos) << failed.error().text();
}

TEST(Json, refuses_trailing_bytes_and_deep_nesting) {
  EXPECT_FALSE(parse_json("{} x"));
  EXPECT_FALSE(parse_json(""));
  EXPECT_FALSE(parse_json(std::string(100'000, '[')));
}

TEST(Json, reports_duplicate_keys_by_path) {
  std::vector<std::string> twice;
  auto value = parse_json(R"({"spec":{"list":[{"a":1},{"a":1,"a":2}],"b":{},"b":{}}})", &twice);
  ASSERT_TRUE(value);
  EXPECT_EQ(twice, (std::vector<std::string>{"spec.list[1].a", "spec.b"}));
}

TEST(Json, lies_where_it_is_told_to_with_its_copies) {
  std::string text = R"({"a":{"b":[1,{"c":"a string that is too long to lie in its value"}]}})";
  json::value value = MUST(parse_json(text, nullptr, arena_for(text)));
  json::value copy = value;
  EXPECT_EQ(copy.storage().get(), value.storage().get());
  value = nullptr;
  EXPECT_EQ(to_text(copy), text);
}

TEST(Json, keeps_key_order_and_exact_integers) {
  std::string text = R"({"z":9007199254740993,"a":-1,"m":18446744073709551615})";
  EXPECT_EQ(to_text(*parse_json(text)), text);
}

TEST(Json, readers_are_total) {
  json::value value = *parse_json(R"({"a":{"b":"c","n":3,"f":true,"l":[1]}})");
  EXPECT_EQ(get_string(value, "a.b"), "c");
  EXPECT_EQ(get_string(value, "a.n"), "");
  EXPECT_EQ(get_string(value, "a.b.c.d"), "");
  EXPECT_EQ(get_int(value, "a.n"), 3);
  EXPECT_EQ(get_int(value, "a.x", 7), 7);
  EXPECT_TRUE(get_bool(value, "a.f"));
  EXPECT_EQ(get_array(value, "a.l").size(), 1u);
  EXPECT_TRUE(get_object(value, "a.b").empty());
  EXPECT_TRUE(get_strings(value, "a.b").empty());
  EXPECT_EQ(get_strings(*parse_json(R"({"a":["b",1,"c"]})"), "a"), (std::vector<std::string>{"b", "c"}));
  make(value, "x.y") = 1;
  EXPECT_EQ(get_int(value, "x.y"), 1);
}

TEST(Json, pretty_prints_like_go) {
  EXPECT_EQ(to_pretty(*parse_json(R"({"a":[1,{}],"b":[]})"), 2), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

}  // namespace
}  // namespace coracle
