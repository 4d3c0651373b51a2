// SPDX-License-Identifier: Apache-2.0
// Strategic merge patches, and how texts and types go together.
#include "ctl/kustomize/merge.h"

#include <gtest/gtest.h>

#include "ctl/kustomize/read.h"
#include "ctl/kustomize/write.h"

namespace coracle::kustomize {
namespace {

Node only(std::string_view text) {
  auto documents = read_documents(text);
  EXPECT_TRUE(documents && documents->size() == 1) << text;
  return documents && !documents->empty() ? (*documents)[0] : Node();
}

std::string merged(std::string_view object, std::string_view patch) {
  auto result = strategic_merge(only(object), only(patch), OpenApi());
  if (!result) return "error: " + result.error().text();
  if (!*result) return "deleted";
  auto value = to_json(**result);
  return value ? go_json(*value) : "error: " + value.error().text();
}

TEST(Merge, merges_fields) {
  EXPECT_EQ(merged("{a: 1, b: {c: 2, d: 3}}", "{b: {c: 4, d: null}, e: [1]}"), R"({"a":1,"b":{"c":4},"e":[1]})");
  EXPECT_EQ(merged("{a: {b: 1}}", "{a: {$patch: replace, c: 2}}"), R"({"a":{"c":2}})");
  EXPECT_EQ(merged("{a: {b: 1}, x: 1}", "{a: {$patch: delete}}"), R"({"x":1})");
  EXPECT_EQ(merged("{a: {b: 1}}", "{$patch: delete}"), "deleted");
  EXPECT_EQ(merged("{a: null, b: , c: {d: null}}", "{x: 1}"), R"({"a":null,"c":{"d":null},"x":1})");
  EXPECT_EQ(merged("{a: [1, 2]}", "{a: [3]}"), R"({"a":[3]})");
  EXPECT_EQ(merged("{a: 1}", "{b: {c: null, d: {$patch: merge, e: 1}}}"), R"({"a":1,"b":{"d":{"e":1}}})");
}

TEST(Merge, the_object_s_quotes_decide) {
  EXPECT_EQ(merged("{a: \"1\", b: 1}", "{a: 2, b: \"2\"}"), R"({"a":"2","b":"2"})");
  EXPECT_EQ(merged("{a: \"x\"}", "{a: true}"), R"({"a":"true"})");
}

TEST(Merge, names_the_place_of_an_error) {
  EXPECT_EQ(merged("{a: {b: 1}}", "{a: {b: {c: 1}}}"), "error: a: b: the patch has a map where the object has text");
  EXPECT_EQ(merged("{a: {b: 1}}", "{a: {$patch: remove}}"),
            "error: a: unknown patch strategy \"remove\": $patch is delete, replace or merge");
}

TEST(Merge, merges_lists_of_known_types_only) {
  const std::string pod = "{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: x}, {name: b}]}}";
  EXPECT_EQ(merged(pod, "{spec: {containers: [{name: b, image: y}]}}"),
            R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"image":"y","name":"b"},{"image":"x","name":"a"}]}})");
  EXPECT_EQ(merged("{apiVersion: x/v1, kind: Pod, spec: {containers: [{name: a}]}}", "{spec: {containers: [{name: b}]}}"),
            R"({"apiVersion":"x/v1","kind":"Pod","spec":{"containers":[{"name":"b"}]}})");
  EXPECT_EQ(merged(pod, "{spec: {containers: [{$patch: replace}, {name: c}]}}"),
            R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c"}]}})");
}

TEST(Merge, lists_are_bounded) {
  std::string many = "{apiVersion: v1, kind: Pod, spec: {containers: [";
  for (int i = 0; i < 4000; ++i) many += "{name: c" + std::to_string(i) + "},";
  EXPECT_EQ(merged(many + "]}}", "{spec: {}}"), "error: spec: containers: a list that merges has too many items");
}

TEST(Read, expands_anchors_within_limits) {
  EXPECT_EQ(go_json(*to_json(only("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n"))), R"({"a":{"b":1,"c":2},"d":{"b":1,"c":3}})");
  std::string bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    std::string last = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [" + last;
    for (int j = 0; j < 9; ++j) bomb += ", " + last;
    bomb += "]\n";
  }
  auto read = read_documents(bomb);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::too_large);
  EXPECT_EQ(read_documents(std::string(200, '[')).error().code(), Code::too_large);
  EXPECT_EQ(read_documents("a: 1\nb: 2\na: 3\n").error().text(), "line 3: the key \"a\" is already set in line 1");
  EXPECT_EQ(read_documents("8080: x\n").error().text(), "line 1: the key 8080 must be text: put it in quotes");
}

}  // namespace
}  // namespace coracle::kustomize
