// SPDX-License-Identifier: Apache-2.0
// Parsing and serializing JSON.
#include "runtime/base/json.h"

#include <gtest/gtest.h>

#include "tests/counted_memory.h"

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
  std::vector<DuplicateKey> twice;
  auto value = parse_json(R"({"x":0,"spec":{"list":[{"a":1},{"a":1,"b":[2],"a":2}],"b":{},"b":{}}})", &twice);
  ASSERT_TRUE(value);
  EXPECT_EQ(twice, (std::vector<DuplicateKey>{{"spec.list[1].a", {1, 0, 1, 2}}, {"spec.b", {1, 2}}}));
}

TEST(Json, names_duplicate_keys_in_bounded_words) {
  std::string text = "{\"" + std::string(1'000'000, 'k') + "\":{\"a\":0";
  for (int i = 0; i < 10'000; i++) text += ",\"a\":1";
  std::vector<DuplicateKey> twice;
  ASSERT_TRUE(parse_json(text + "}}", &twice));
  ASSERT_EQ(twice.size(), kDuplicateKeysMax);
  EXPECT_LT(twice.front().path.size(), kPathBytesMax + 10);
  EXPECT_EQ(shortened_path("spec.replicas"), "spec.replicas");
  EXPECT_EQ(shortened_path(std::string(kPathBytesMax - 1, 'x') + "é!"), std::string(kPathBytesMax - 1, 'x') + "...");
}

TEST(Json, skips_a_byte_order_mark) {
  auto value = parse_json("\xef\xbb\xbf{\"a\":1}");
  ASSERT_TRUE(value) << value.error().text();
  EXPECT_EQ(to_text(*value), "{\"a\":1}");
  EXPECT_FALSE(parse_json("\xef\xbb\xbf"));
  EXPECT_FALSE(parse_json("{}\xef\xbb\xbf"));
}

TEST(Json, measures_depth_without_going_deeper) {
  struct Row {
    const char* text;
    size_t levels;
  };
  for (const Row& row : {Row{"1", 0}, Row{"{}", 1}, Row{"[]", 1}, Row{R"({"a":1})", 1}, Row{R"({"a":[1,{"b":[]}]})", 4}}) {
    json::value value = *parse_json(row.text);
    EXPECT_FALSE(deeper_than(value, row.levels)) << row.text;
    EXPECT_EQ(row.levels > 0 && deeper_than(value, row.levels - 1), row.levels > 0) << row.text;
  }
}

TEST(Json, members_are_taken_out_in_one_go) {
  json::value value = *parse_json(R"({"z":1,"a":2,"m":3,"b":4})");
  erase_members_if(value.get_object(), [](const auto& member) { return member.key() == "a" || member.key() == "b"; });
  EXPECT_EQ(to_text(value), R"({"z":1,"m":3})");
}

TEST(Json, lies_where_it_is_told_to_with_its_copies) {
  std::string text = R"({"a":{"b":[1,{"c":"a string that is too long to lie in its value"}]}})";
  json::value value = MUST(parse_json(text, nullptr, arena_for(text)));
  json::value copy = value;
  EXPECT_EQ(copy.storage().get(), value.storage().get());
  value = nullptr;
  EXPECT_EQ(to_text(copy), text);
}

TEST(Json, is_compared_as_boost_does_but_takes_no_memory) {
  struct Row {
    const char *left, *right;
    bool same;
  };
  CountedMemory memory;
  for (const Row& row : {
           Row{"null", "null", true},
           {"null", "{}", false},
           {"{}", "[]", false},
           {"[]", "{}", false},
           {"{}", "{}", true},
           {"1", "1", true},
           {"1", "1.0", false},
           {"-1", "18446744073709551615", false},
           {"18446744073709551615", "18446744073709551615", true},
           {"true", "false", false},
           {R"("a text of more than a few characters")", R"("a text of more than a few characters")", true},
           {R"({"a":1,"b":{"c":[1,{"d":2}]}})", R"({"b":{"c":[1,{"d":2}]},"a":1})", true},  // in another order
           {R"({"a":1,"b":{"c":[1,{"d":2}]}})", R"({"b":{"c":[1,{"d":3}]},"a":1})", false},
           {R"({"a":1,"b":2})", R"({"a":1,"c":2})", false},
           {R"({"a":1})", R"({"a":1,"b":2})", false},
           {R"({"a":null})", R"({"b":null})", false},
           {"[1,2]", "[2,1]", false},
           {"[1,2]", "[1,2,3]", false},
           {R"([{"a":{}},[]])", R"([{"a":{}},[]])", true},
           {R"([{"a":{}},[]])", R"([{"a":[]},[]])", false},
       }) {
    json::value left = MUST(parse_json(row.left, nullptr, &memory)), right = MUST(parse_json(row.right, nullptr, &memory));
    const size_t before = memory.taken();
    EXPECT_EQ(same_json(left, right), row.same) << row.left << " " << row.right;
    EXPECT_EQ(same_json(right, left), row.same) << row.left << " " << row.right;
    EXPECT_EQ(memory.taken(), before) << row.left;
    EXPECT_EQ(left == right, row.same) << "boost: " << row.left << " " << row.right;
  }
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

TEST(Json, makes_objects_and_arrays_on_a_path_and_keeps_those_that_are_there) {
  json::value value = *parse_json(R"({"a":{"b":{"c":1},"d":[2],"n":null,"t":"text"}})");
  make_object(value, "a.b")["e"] = 3;
  make_array(value, "a.d").push_back(4);
  make_object(value, "a.n")["f"] = 5;
  make_array(value, "a.t").push_back(6);
  make_array(value, "g.h");
  EXPECT_EQ(to_text(value), R"({"a":{"b":{"c":1,"e":3},"d":[2,4],"n":{"f":5},"t":[6]},"g":{"h":[]}})");
}

TEST(Json, pretty_prints_like_go) {
  EXPECT_EQ(to_pretty(*parse_json(R"({"a":[1,{}],"b":[]})"), 2), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

}  // namespace
}  // namespace coracle
