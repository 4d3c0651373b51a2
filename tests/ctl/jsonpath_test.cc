// SPDX-License-Identifier: Apache-2.0
// kubectl's JSONPath templates.
#include "ctl/jsonpath.h"

#include <gtest/gtest.h>

namespace coracle::ctl {
namespace {

const char* kPodList = R"({"kind":"List","items":[
  {"metadata":{"name":"a","labels":{"app.io/x":"1"}},"status":{"n":1,"conditions":[{"type":"Ready","status":"True"},{"type":"Other","status":"False"}]}},
  {"metadata":{"name":"b"},"status":{"n":5,"conditions":[{"type":"Ready","status":"False"}]}}]})";

TEST(Jsonpath, gives_what_kubectl_gives) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row : {
           Row{"{.kind}", "List"},
           Row{"{$.kind}", "List"},
           Row{".kind", "List"},
           Row{"{.items[*].metadata.name}", "a b"},
           Row{"{.items[0].metadata.name}", "a"},
           Row{"{.items[-1].metadata.name}", "b"},
           Row{"{.items[0:1].metadata.name}", "a"},
           Row{"{.items[0,1].metadata.name}", "a b"},
           Row{"{.items[0].metadata.labels.app\\.io/x}", "1"},
           Row{"{.items[0].metadata.labels['app.io/x']}", "1"},
           Row{"{.items[?(@.metadata.name==\"b\")].status.n}", "5"},
           Row{"{.items[?(@.status.n>2)].metadata.name}", "b"},
           Row{"{.items[*].status.conditions[?(@.type=='Ready')].status}", "True False"},
           Row{"{range .items[*]}{.metadata.name}={.status.n}{\"\\n\"}{end}", "a=1\nb=5\n"},
           Row{"x{.items[*].nothing}y", "xy"},
           Row{"{..name}", "a b"},
           Row{"{.items[0].status.conditions[1]}", "{\"type\":\"Other\",\"status\":\"False\"}"},
           Row{"{.items[?(@.nothing)].x}", ""},
       }) {
    json::value root = *parse_json(kPodList);
    auto got = jsonpath(row.text, root);
    ASSERT_TRUE(got) << row.text << ": " << got.error().text();
    EXPECT_EQ(*got, row.want) << row.text;
  }
}

TEST(Jsonpath, an_index_that_a_list_has_not_is_an_error) {
  json::value root = *parse_json(kPodList), empty = *parse_json(R"({"items":[]})");
  EXPECT_EQ(jsonpath("{.items[2].metadata.name}", root).error().text(), "array index out of bounds: index 2, length 2");
  EXPECT_EQ(jsonpath("{.items[0].metadata.name}", empty).error().text(), "array index out of bounds: index 0, length 0");
  EXPECT_EQ(jsonpath("{.items[-1]}", empty).error().text(), "array index out of bounds: index -1, length 0");
  EXPECT_EQ(
      *jsonpath("{.items[*].metadata.name}{.nothing[3]}{.items[?(@.status.conditions[1].type==\"Other\")].metadata.name}", root),
      "a ba");
  EXPECT_TRUE(jsonpath_select(".items[0]", empty)->empty()) << "no template";
}

TEST(Jsonpath, says_where_a_template_is_wrong) {
  json::value root = *parse_json(kPodList);
  for (const char* text : {"{.items[}", "{.items[*]", "{range .items[*]}x", "{end}", "{.a[?(@.b==]}", "{'x}", "{.items[::0]}"}) {
    auto got = jsonpath(text, root);
    ASSERT_FALSE(got) << text;
    EXPECT_NE(got.error().text().find("position"), std::string::npos);
  }
}

TEST(Jsonpath, bounds_how_deep_a_template_nests) {
  json::value root = *parse_json("[1]");
  std::string ranges, filters = "{";
  for (int i = 0; i < 100'000; ++i) ranges += "{range .items}", filters += ".a[?(@";
  for (const std::string& text : {ranges, filters}) {
    auto got = jsonpath(text, root);
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().text().find("nested too deeply"), std::string::npos);
  }
  EXPECT_EQ(*jsonpath("{range [*]}{range [*]}{end}x{end}", *parse_json("[[1]]")), "x");
}

}  // namespace
}  // namespace coracle::ctl
