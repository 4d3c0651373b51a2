// SPDX-License-Identifier: Apache-2.0
// kubectl's JSONPath templates.
#include "ctl/jsonpath.h"

#include <gtest/gtest.h>

#include "tests/ctl/jsonpath_cases.h"
#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

std::string printed(const std::string& text, const json::value& root, bool missing_key_is_error = false) {
  auto path = JsonPath::parse(text);
  if (!path) return "error: " + path.error().text();
  auto out = path->print(root, missing_key_is_error);
  return out ? *out : "error: " + out.error().text();
}

TEST(Jsonpath, gives_what_kubectl_gives) {
  json::value object = parsed(kPrintedObject);
  for (const auto& row : kPathCases)
    EXPECT_EQ(printed(row.text, object, row.missing_key_is_error), *row.error ? std::string("error: ") + row.error : row.out)
        << row.text;
}

// kubectl's order is any.
TEST(Jsonpath, has_the_members_of_an_object_in_the_order_of_their_names) {
  json::value object = parsed(R"({"c":{"name":1},"a":{"name":2,"b":{"name":3}}})");
  EXPECT_EQ(printed("{..name}", object), "2 3 1");
  EXPECT_EQ(printed("{..['name']}", object), "2 3 1");
  EXPECT_EQ(printed("{.*.name}", object), "2 1");
}

TEST(Jsonpath, is_an_array_of_json_where_that_is_asked_for) {
  json::value object = parsed(kPrintedObject);
  EXPECT_EQ(*JsonPath::parse("{.spec.list[0:2]}x{.spec.nope}{.spec.nul}")->print_json(object),
            "[\n    10,\n    20\n]\n[\n    \"x\"\n]\n[]\n[\n    null\n]\n");
  EXPECT_EQ(*JsonPath::parse("{.metadata.labels}")->print_json(object),
            "[\n    {\n        \"app.io/x\": \"1\",\n        \"q\": \"1\",\n        \"tier\": \"front\"\n    }\n]\n");
}

TEST(Jsonpath, takes_one_expression_in_four_ways) {
  for (const char* text : {"a.b", ".a.b", "{a.b}", "{.a.b}"}) EXPECT_EQ(*relaxed_jsonpath(text), "{.a.b}") << text;
  EXPECT_EQ(*relaxed_jsonpath(""), "");
  EXPECT_EQ(*relaxed_jsonpath("."), "{..}");
  for (const char* text : {"{.a", ".a}", "{.a}{.b}", "x{.a}", "{}"}) {
    auto path = relaxed_jsonpath(text);
    ASSERT_FALSE(path) << text;
    EXPECT_EQ(path.error().text(),
              "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'");
  }
}

TEST(Jsonpath, bounds_how_deep_a_template_nests_and_how_much_it_selects) {
  json::value root = parsed("[1,2,3,4,5,6,7,8,9,10]");
  std::string ranges, filters = "{";
  for (int i = 0; i < 100'000; ++i) ranges += "{range @}", filters += ".a[?(@";
  EXPECT_NE(printed(ranges, parsed("[1]")).find("nested too deeply"), std::string::npos);
  EXPECT_NE(printed(filters, root).find("unterminated filter"), std::string::npos);
  std::string many = "{[*";
  for (int i = 0; i < 2000; ++i) many += ",*";
  EXPECT_NE(printed(many + "]" + many.substr(1) + "]" + many.substr(1) + "]}", parsed("[[[1,1],[1,1]],[[1,1],[1,1]]]"))
                .find("more than"),
            std::string::npos);
  EXPECT_EQ(printed("{range [*]}{range [*]}{end}x{end}", parsed("[[1]]")), "x");
}

}  // namespace
}  // namespace coracle::ctl
