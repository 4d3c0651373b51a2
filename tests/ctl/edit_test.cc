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
  split_changes({"pods", "web-", "a=b", "x.io/c-", "=odd", "e="}, objects, changes);
  EXPECT_EQ(objects, (std::vector<std::string>{"pods", "=odd"}));
  ASSERT_EQ(changes.size(), 4u);
  EXPECT_EQ(changes[0].key, "web");
  EXPECT_FALSE(changes[0].value);
  EXPECT_EQ(changes[1].value, "b");
  EXPECT_EQ(changes[2].key, "x.io/c");
  EXPECT_EQ(changes[3].value, "");
}

TEST(Edit, marks_add_change_and_remove) {
  json::object present{{"a", "1"}, {"b", "2"}};
  auto marks = marks_of(present, changes_of({"c=3", "b-", "z-", "a=1"}), false);
  ASSERT_TRUE(marks);
  EXPECT_EQ(to_text(marks->patch), R"({"c":"3","b":null})");
  EXPECT_EQ(marks->absent, std::vector<std::string>{"z"});
  EXPECT_FALSE(marks->removed_only);
  auto refused = marks_of(present, changes_of({"a=9"}), false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "'a' already has a value (1), and --overwrite is false");
  EXPECT_EQ(to_text(marks_of(present, changes_of({"a=9"}), true)->patch), R"({"a":"9"})");
  EXPECT_TRUE(marks_of(present, changes_of({"a-"}), false)->removed_only);
  EXPECT_TRUE(marks_of(present, changes_of({"a=1"}), false)->patch.empty());
}

TEST(Edit, leaves_comments_out) {
  EXPECT_EQ(without_comments("# head\na: 1\n  # kept, it is indented\n#b\n"), "a: 1\n  # kept, it is indented\n");
  EXPECT_EQ(without_comments("a: 1"), "a: 1");
  EXPECT_EQ(without_comments(""), "");
  EXPECT_EQ(without_comments("#"), "");
}

}  // namespace
}  // namespace coracle::ctl
