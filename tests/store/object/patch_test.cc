// SPDX-License-Identifier: Apache-2.0
// JSON patch and merge patch: the cases of the RFCs, errors by kind, limits.
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
           Row{R"({"a":1})", R"([{"op":"replace","path":"","value":[2]}])", R"([2])"},
           Row{R"({"a":1})", R"([{"op":"test","path":"","value":{"a":1.0}},{"op":"replace","path":"","value":{"b":2}}])",
               R"({"b":2})"},
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

TEST(JsonPatch, takes_what_kubernetes_takes_beyond_rfc_6902) {
  struct Row {
    const char *document, *patch, *want;
  };
  for (const Row& row : {
           Row{R"({"a":{}})", R"([{"op":"replace","path":"/a/b","value":2}])", R"({"a":{"b":2}})"},
           Row{R"({"a":{}})", R"([{"op":"test","path":"/a/b","value":null},{"op":"add","path":"/a/b","value":1}])",
               R"({"a":{"b":1}})"},
           Row{R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/-1"}])", R"({"a":[1,2]})"},
           Row{R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/-3"}])", R"({"a":[2,3]})"},
           Row{R"({"a":[1,2]})", R"([{"op":"add","path":"/a/-1","value":3}])", R"({"a":[1,2,3]})"},
           Row{R"({"a":[1,2]})", R"([{"op":"add","path":"/a/-3","value":0}])", R"({"a":[0,1,2]})"},
           Row{R"({"a":[1,2]})", R"([{"op":"replace","path":"/a/-1","value":4}])", R"({"a":[1,4]})"},
           Row{R"({"a":[1,{"b":2}]})", R"([{"op":"test","path":"/a/-1/b","value":2},{"op":"move","from":"/a/-1","path":"/c"}])",
               R"({"a":[1],"c":{"b":2}})"},
           Row{R"({"a":{}})", R"([{"op":"add","path":"/a/b"}])", R"({"a":{"b":null}})"},
           Row{R"({"a":[1]})", R"([{"op":"add","path":"/a/-"},{"op":"replace","path":"/a/0"}])", R"({"a":[null,null]})"},
           Row{R"({"a":{}})", R"([{"op":"add","path":"/a/~2","value":1}])", R"({"a":{"~2":1}})"},
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
           Row{R"([{"op":1,"path":"/x","value":1}])", Code::bad_request},
           Row{R"([{"op":"add","path":1,"value":1}])", Code::bad_request},
           Row{R"([{"op":"move","from":1,"path":"/x"}])", Code::bad_request},
           Row{R"([{"op":"add","value":1}])", Code::invalid},
           Row{R"([{"op":"add","path":"x","value":1}])", Code::invalid},
           Row{R"([{"op":"fly","path":"/x","value":1}])", Code::invalid},
           Row{R"([{"path":"/x","value":1}])", Code::invalid},
           Row{R"([{"op":"move","path":"/x"}])", Code::invalid},
           Row{R"([{"op":"test","path":"/a"}])", Code::invalid},
           Row{R"([{"op":"remove","path":"/x"}])", Code::invalid},
           Row{R"([{"op":"remove","path":""}])", Code::invalid},
           Row{R"([{"op":"add","path":"","value":{}}])", Code::invalid},  // json-patch v4 finds no place for it; RFC 6902 does
           Row{R"([{"op":"copy","from":"/o","path":""}])", Code::invalid},
           Row{R"([{"op":"copy","from":"","path":"/x"}])", Code::invalid},
           Row{R"([{"op":"move","from":"/o","path":""}])", Code::invalid},
           Row{R"([{"op":"move","from":"","path":"/x"}])", Code::invalid},
           Row{R"([{"op":"replace","path":"","value":1}])", Code::invalid},
           Row{R"([{"op":"replace","path":"","value":null}])", Code::invalid},
           Row{R"([{"op":"replace","path":""}])", Code::invalid},
           Row{R"([{"op":"test","path":"","value":{"a":1}}])", Code::invalid},
           Row{R"([{"op":"replace","path":"/x/y","value":1}])", Code::invalid},
           Row{R"([{"op":"replace","path":"/l/9","value":1}])", Code::invalid},
           Row{R"([{"op":"remove","path":"/l/-9"}])", Code::invalid},
           Row{R"([{"op":"remove","path":"/l/-0"}])", Code::invalid},
           Row{R"([{"op":"add","path":"/x/y","value":1}])", Code::invalid},
           Row{R"([{"op":"add","path":"/l/3","value":1}])", Code::invalid},
           Row{R"([{"op":"add","path":"/l/01","value":1}])", Code::invalid},
           Row{R"([{"op":"remove","path":"/l/-"}])", Code::invalid},
           Row{R"([{"op":"test","path":"/a","value":2}])", Code::invalid},
           Row{R"([{"op":"test","path":"/a","value":null}])", Code::invalid},
           Row{R"([{"op":"test","path":"/zz/y","value":null}])", Code::invalid},
           Row{R"([{"op":"test","path":"/l/9","value":null}])", Code::invalid},
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
  json::array doubling(64, *parse_json(R"({"op":"copy","from":"/a"})"));
  document = *parse_json(R"({"a":{"y":"0123456789"}})");
  for (size_t i = 0; i < doubling.size(); i++) doubling[i].get_object()["path"] = "/a/x" + std::to_string(i);
  EXPECT_EQ(apply_json_patch(document, doubling).error().code(), Code::too_large);
}

// Doubles the depth with each operation: a list is copied into its own innermost list.
json::array doubling_depth(size_t times) {
  json::array operations{json::object{{"op", "add"}, {"path", "/x"}, {"value", *parse_json("[[]]")}}};
  std::string innermost = "/x/0";
  for (size_t i = 0, depth = 2; i < times; i++, depth *= 2) {
    operations.push_back(json::object{{"op", "copy"}, {"from", "/x"}, {"path", innermost + "/0"}});
    for (size_t j = 0; j < depth; j++) innermost += "/0";
  }
  return operations;
}

TEST(JsonPatch, never_nests_deeper_than_a_document_may) {
  json::value document = json::object();
  auto failed = apply_json_patch(document, doubling_depth(17));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::bad_request) << failed.error().text();
  EXPECT_FALSE(deeper_than(document, kJsonDepthMax));

  auto nested = [](size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  struct Row {
    std::string name, document, patch;
    bool good;
  };
  std::string deep = nested(60), place = "/a/b";  // /a/b holds 60 levels; the path's steps are levels, too
  std::string inside = place;
  for (int i = 0; i < 59; i++) inside += "/0";
  std::string both = R"({"a":{"b":)" + deep + R"(},"c":)" + nested(39) + R"(,"d":)" + nested(38) + "}";
  for (const Row& row : {
           Row{"add, as deep as may be", both, R"([{"op":"add","path":")" + inside + R"(/0","value":)" + nested(38) + "}]", true},
           Row{"add", both, R"([{"op":"add","path":")" + inside + R"(/0","value":)" + nested(39) + "}]", false},
           Row{"add to the end", both, R"([{"op":"add","path":")" + inside + R"(/-","value":)" + nested(39) + "}]", false},
           Row{"replace, as deep as may be", both, R"([{"op":"replace","path":")" + inside + R"(","value":)" + nested(39) + "}]",
               true},
           Row{"replace", both, R"([{"op":"replace","path":")" + inside + R"(","value":)" + nested(40) + "}]", false},
           Row{"replace the whole", both, R"([{"op":"replace","path":"","value":)" + nested(98) + "}]", true},
           Row{"copy, as deep as may be", both, R"([{"op":"copy","from":"/d","path":")" + inside + R"(/0"}])", true},
           Row{"copy", both, R"([{"op":"copy","from":"/c","path":")" + inside + R"(/0"}])", false},
           Row{"move, as deep as may be", both, R"([{"op":"move","from":"/d","path":")" + inside + R"(/0"}])", true},
           Row{"move", both, R"([{"op":"move","from":"/c","path":")" + inside + R"(/0"}])", false},
       }) {
    document = *parse_json(row.document);
    auto done = apply_json_patch(document, *parse_json(row.patch));
    EXPECT_EQ(bool(done), row.good) << row.name << (done ? "" : ": " + done.error().text());
    EXPECT_FALSE(deeper_than(document, kJsonDepthMax)) << row.name;
  }
  std::string path;
  for (int i = 0; i < 1'000'000; i++) path += "/0";
  failed = apply_json_patch(document, json::array{json::object{{"op", "remove"}, {"path", path}}});
  EXPECT_EQ(failed.error().code(), Code::bad_request);
  EXPECT_LT(failed.error().text().size(), 2000u);
}

TEST(JsonPatch, bounds_what_it_moves_around) {
  auto times = [](size_t count, const json::value& operation) { return json::array(count, operation); };
  json::value document = json::object{{"a", json::array(1'000'000, 1)}};
  EXPECT_EQ(apply_json_patch(document, times(10'000, *parse_json(R"({"op":"remove","path":"/a/0"})"))).error().code(),
            Code::too_large);
  document = json::object{{"a", json::array(10'000, 1)}};
  EXPECT_TRUE(apply_json_patch(document, times(10'000, *parse_json(R"({"op":"remove","path":"/a/0"})"))));
  document = json::object{{"a", json::array(100'000, 1)}};
  json::array moves;
  for (int i = 0; i < 5000; i++) {
    moves.push_back(*parse_json(R"({"op":"move","from":"/a","path":"/b"})"));
    moves.push_back(*parse_json(R"({"op":"move","from":"/b","path":"/a"})"));
  }
  EXPECT_EQ(apply_json_patch(document, moves).error().code(), Code::too_large);
  json::object members;
  for (int i = 0; i < 100'000; i++) members["k" + std::to_string(i)] = i;
  json::array removals;
  for (int i = 0; i < 10'000; i++) removals.push_back(json::object{{"op", "remove"}, {"path", "/k" + std::to_string(i)}});
  document = members;
  EXPECT_EQ(apply_json_patch(document, removals).error().code(), Code::too_large);
}

TEST(MergePatch, takes_many_members_out_at_once) {
  json::object members, deletions;
  for (int i = 0; i < 200'000; i++) {
    members["k" + std::to_string(i)] = i;
    if (i % 3 != 0) deletions["k" + std::to_string(i)] = nullptr;
  }
  json::value document = members;
  apply_merge_patch(document, deletions);  // deleting one by one would move all that follow, which takes minutes
  ASSERT_EQ(document.get_object().size(), 66'667u);
  EXPECT_EQ(document.get_object().begin()->key(), "k0");
  EXPECT_EQ((document.get_object().end() - 1)->key(), "k199998") << "the rest keeps its order";
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
