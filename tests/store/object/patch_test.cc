// SPDX-License-Identifier: Apache-2.0
// Behaviour of JSON patch and merge patch: the RFCs' own cases, errors by kind, limits.
#include "store/object/patch.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(JsonPatch, applies_the_operations_of_rfc_6902) {
  struct Row {
    const char *document, *patch, *want;
  };
  for (const Row& row : {
           Row{R"({"a":1})", R"([{"op":"add","path":"/b","value":2}])", R"({"a":1,"b":2})"},
           Row{R"({"a":[1,3]})", R"([{"op":"add","path":"/a/1","value":2}])", R"({"a":[1,2,3]})"},
           Row{R"({"a":[1]})", R"([{"op":"add","path":"/a/-","value":[2]}])", R"({"a":[1,[2]]})"},
           Row{R"({"a":1})", R"([{"op":"add","path":"","value":[2]}])", R"([2])"},
           Row{R"({"a":1,"b":2})", R"([{"op":"remove","path":"/a"}])", R"({"b":2})"},
           Row{R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/1"}])", R"({"a":[1,3]})"},
           Row{R"({"a":1})", R"([{"op":"replace","path":"/a","value":null}])", R"({"a":null})"},
           Row{R"({"a":{"b":1},"c":{}})", R"([{"op":"move","from":"/a/b","path":"/c/d"}])", R"({"a":{},"c":{"d":1}})"},
           Row{R"({"a":[1,2]})", R"([{"op":"move","from":"/a/0","path":"/a/1"}])", R"({"a":[2,1]})"},
           Row{R"({"a":{"b":1}})", R"([{"op":"copy","from":"/a","path":"/a/c"}])", R"({"a":{"b":1,"c":{"b":1}}})"},
           Row{R"({"a/b":{"m~n":1}})", R"([{"op":"replace","path":"/a~1b/m~0n","value":2}])", R"({"a/b":{"m~n":2}})"},
           Row{R"({"":1})", R"([{"op":"replace","path":"/","value":2}])", R"({"":2})"},
           Row{R"({"a":1.0,"b":{"x":1,"y":2}})",
               R"([{"op":"test","path":"/a","value":1},{"op":"test","path":"/b","value":{"y":2,"x":1}}])",
               R"({"a":1.0,"b":{"x":1,"y":2}})"},
       }) {
    json::value document = *parse_json(row.document);
    auto done = apply_json_patch(document, *parse_json(row.patch));
    ASSERT_TRUE(done) << row.patch << ": " << done.error().text();
    EXPECT_TRUE(json_equal(document, *parse_json(row.want))) << row.patch << ": " << to_text(document);
  }
}

TEST(JsonPatch, tells_malformed_from_inapplicable) {
  struct Row {
    const char* patch;
    Code want;
  };
  for (const Row& row : {
           Row{R"({})", Code::bad_request},
           Row{R"([1])", Code::bad_request},
           Row{R"([{"op":"add","path":"/x"}])", Code::bad_request},
           Row{R"([{"op":"add","path":"x","value":1}])", Code::bad_request},
           Row{R"([{"op":"add","path":"/~2","value":1}])", Code::bad_request},
           Row{R"([{"op":"fly","path":"/x","value":1}])", Code::bad_request},
           Row{R"([{"op":"move","path":"/x"}])", Code::bad_request},
           Row{R"([{"op":"remove","path":"/x"}])", Code::invalid},
           Row{R"([{"op":"remove","path":""}])", Code::invalid},
           Row{R"([{"op":"replace","path":"/x","value":1}])", Code::invalid},
           Row{R"([{"op":"add","path":"/x/y","value":1}])", Code::invalid},
           Row{R"([{"op":"add","path":"/l/3","value":1}])", Code::invalid},
           Row{R"([{"op":"add","path":"/l/01","value":1}])", Code::invalid},
           Row{R"([{"op":"remove","path":"/l/-"}])", Code::invalid},
           Row{R"([{"op":"test","path":"/a","value":2}])", Code::invalid},
           Row{R"([{"op":"test","path":"/zz","value":null}])", Code::invalid},
           Row{R"([{"op":"move","from":"/o","path":"/o/p"}])", Code::invalid},
       }) {
    json::value document = *parse_json(R"({"a":1,"l":[1,2],"o":{}})");
    auto failed = apply_json_patch(document, *parse_json(row.patch));
    ASSERT_FALSE(failed) << row.patch;
    EXPECT_EQ(failed.error().code(), row.want) << row.patch << ": " << failed.error().text();
  }
}

TEST(JsonPatch, has_limits) {
  json::array many(10'001, *parse_json(R"({"op":"test","path":"","value":{}})"));
  json::value document = json::object();
  EXPECT_EQ(apply_json_patch(document, many).error().code(), Code::too_large);
  json::array doubling(64, *parse_json(R"({"op":"copy","from":"","path":"/x"})"));
  document = *parse_json(R"({"y":"0123456789"})");
  for (size_t i = 0; i < doubling.size(); i++) doubling[i].get_object()["path"] = "/x" + std::to_string(i);
  EXPECT_EQ(apply_json_patch(document, doubling).error().code(), Code::too_large);
}

TEST(MergePatch, follows_rfc_7386_appendix_a) {
  struct Row {
    const char *document, *patch, *want;
  };
  for (const Row& row : {
           Row{R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
           Row{R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
           Row{R"({"a":"b"})", R"({"a":null})", R"({})"},
           Row{R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
           Row{R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
           Row{R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
           Row{R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
           Row{R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
           Row{R"({"a":"b"})", R"(["c"])", R"(["c"])"},
           Row{R"({"a":"foo"})", R"(null)", R"(null)"},
           Row{R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
           Row{R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
           Row{R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
       }) {
    json::value document = *parse_json(row.document);
    apply_merge_patch(document, *parse_json(row.patch));
    EXPECT_EQ(document, *parse_json(row.want)) << row.document << " + " << row.patch;
  }
}

TEST(MergePatch, is_made_from_two_states) {
  json::value before = *parse_json(R"({"a":1,"b":{"c":[1],"d":2},"e":3})");
  json::value after = *parse_json(R"({"a":1,"b":{"c":[2],"d":2},"f":{}})");
  json::value patch = make_merge_patch(before, after);
  EXPECT_EQ(patch, *parse_json(R"({"e":null,"b":{"c":[2]},"f":{}})"));
  apply_merge_patch(before, patch);
  EXPECT_TRUE(json_equal(before, after));
}

}  // namespace
}  // namespace coracle
