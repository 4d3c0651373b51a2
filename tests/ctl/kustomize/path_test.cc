// SPDX-License-Identifier: Apache-2.0
// Field paths of replacements.
#include "ctl/kustomize/path.h"

#include <gtest/gtest.h>

#include "ctl/kustomize/read.h"
#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

Node node_of(std::string_view text) {
  auto documents = read_documents(text);
  EXPECT_TRUE(documents && documents->size() == 1) << text;
  return documents && !documents->empty() ? (*documents)[0] : Node();
}

TEST(Path, splits) {
  auto split = [](const char* path) { return join(split_path(path), "|"); };
  EXPECT_EQ(split("a.b.c"), "a|b|c");
  EXPECT_EQ(split(".a.b"), "a|b");
  EXPECT_EQ(split("a.[b=c.d].e"), "a|[b=c.d]|e");
  EXPECT_EQ(split("a.[b.c/d].e"), "a|b.c/d|e");
  EXPECT_EQ(split("a.b\\.c.d"), "a|b.c|d");
  EXPECT_EQ(split("a.[b.c"), "a|b.c");
  EXPECT_EQ(split("a.[b]"), "a|[b]");
}

TEST(Path, looks_up) {
  Node object = node_of("a: {b: [{n: x, v: 1}, {n: y, v: 2}], t: [p, q]}\n");
  auto text = [&](const char* path) -> std::string {
    auto found = lookup(object, split_path(path));
    if (!found) return found.error().text();
    return *found ? (*found)->text : "absent";
  };
  EXPECT_EQ(text("a.b.[n=y].v"), "2");
  EXPECT_EQ(text("a.b.0.v"), "1");
  EXPECT_EQ(text("a.b.-.v"), "2");
  EXPECT_EQ(text("a.b.7.v"), "absent");
  EXPECT_EQ(text("a.t.[=q]"), "q");
  EXPECT_EQ(text("a.none.x"), "absent");
  EXPECT_EQ(text("a.b.c"), "cannot look for c in a list; expected a map");
  EXPECT_EQ(text("a.b.[n]"), "expected [field=value] instead of [n]");
  EXPECT_EQ(text("a.*"), "* is not supported in this path");
}

TEST(Path, matches_all_and_creates) {
  auto count = [](Node& object, const char* path, bool creates) -> std::string {
    auto found = match(object, split_path(path), {creates});
    return found ? std::to_string(found->size()) : found.error().text();
  };
  Node object = node_of("a: [{n: web, v: 1}, {n: web-2}, {n: db}]\nl: [x, y]\n");
  EXPECT_EQ(count(object, "a.[n=web].v", false), "1");
  EXPECT_EQ(count(object, "a.[n=web].v", true), "2");
  EXPECT_EQ(count(object, "a.*.n", false), "3");
  EXPECT_EQ(count(object, "l.[=^x$]", false), "1");
  EXPECT_EQ(count(object, "l.5", true), "item 5 is asked for, but there are 2");
  EXPECT_EQ(count(object, "l.2", true), "1");
  EXPECT_EQ(count(object, "new.[n=a].deep.0.x", true), "1");
  ASSERT_NE(object.find("new"), nullptr);
  EXPECT_EQ(object.find("new")->items[0].find("n")->text, "a");
  EXPECT_EQ(count(object, "a.x", false), "cannot look for x in a list; expected a map");
}

}  // namespace
}  // namespace coracle::kustomize
