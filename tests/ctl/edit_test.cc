// SPDX-License-Identifier: Apache-2.0
// From the arguments of label, annotate and set to patches.
#include "ctl/edit.h"

#include <gtest/gtest.h>

#include "tests/ctl/changes.h"

namespace coracle::ctl {
namespace {

TEST(Edit, tells_objects_from_changes) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  ASSERT_TRUE(split_pairs({"pods", "=odd", "web-", "a=b", "x.io/c-", "e="}, "label", objects, changes));
  EXPECT_EQ(objects, (std::vector<std::string>{"pods", "=odd"}));
  ASSERT_EQ(changes.size(), 4u);
  EXPECT_EQ(changes[0].key, "web");
  EXPECT_FALSE(changes[0].value);
  EXPECT_EQ(changes[1].value, "b");
  EXPECT_EQ(changes[2].key, "x.io/c");
  EXPECT_EQ(changes[3].value, "");
  changes.clear();
  auto late = split_pairs({"pods", "a=b", "web"}, "label", objects, changes);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().text(), "all resources must be specified before label changes: web");
}

TEST(Edit, marks_add_change_and_remove) {
  json::object present{{"a", "1"}, {"b", "2"}};
  Marks marks = marks_of(present, changes_of({"c=3", "b-", "z-", "a=1"}), false);
  EXPECT_EQ(to_text(marks.patch), R"({"c":"3","b":null})");
  EXPECT_EQ(marks.absent, std::vector<std::string>{"z"});
  EXPECT_TRUE(marks.adds && marks.removes);
  EXPECT_EQ(marks_of(present, changes_of({"a=9"}), false).taken, std::vector<std::string>{"'a' already has a value (1)"});
  EXPECT_EQ(to_text(marks_of(present, changes_of({"a=9"}), true).patch), R"({"a":"9"})");
  EXPECT_FALSE(marks_of(present, changes_of({"a-"}), false).adds);
  EXPECT_TRUE(marks_of(present, changes_of({"a=1"}), false).patch.empty());
  EXPECT_EQ(contradictions_of(changes_of({"a=1", "a-", "b-"})), std::vector<std::string>{"a"});
}

TEST(Edit, leaves_comments_out) {
  EXPECT_EQ(without_comments("# head\na: 1\n  # kept, it is indented\n#b\n"), "a: 1\n  # kept, it is indented\n");
  EXPECT_EQ(without_comments("a: 1"), "a: 1");
  EXPECT_EQ(without_comments(""), "");
  EXPECT_EQ(without_comments("#"), "");
}

}  // namespace
}  // namespace coracle::ctl
