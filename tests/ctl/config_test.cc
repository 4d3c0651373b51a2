// SPDX-License-Identifier: Apache-2.0
// Changes of a kubeconfig's contexts.
#include "ctl/config.h"

#include <gtest/gtest.h>

namespace coracle::ctl {
namespace {

TEST(Config, contexts_are_switched_and_changed) {
  json::value config =
      *parse_json(R"({"current-context":"a","contexts":[{"name":"a","context":{"cluster":"c"}},{"name":"b","context":{}}]})");
  ASSERT_TRUE(use_context(config, "b"));
  EXPECT_EQ(get_string(config, "current-context"), "b");
  auto unknown = use_context(config, "z");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().text(), "no context exists with the name \"z\"; there are: a, b");
  EXPECT_TRUE(set_context(config, "a", {.ns = "shop"}));
  EXPECT_EQ(to_text(get_array(config, "contexts")[0]), R"({"name":"a","context":{"cluster":"c","namespace":"shop"}})");
  EXPECT_FALSE(set_context(config, "new", {.cluster = "c", .user = "u"}));
  EXPECT_EQ(to_text(get_array(config, "contexts")[2]), R"({"name":"new","context":{"cluster":"c","user":"u"}})");
  json::value empty = json::object();
  EXPECT_FALSE(set_context(empty, "x", {.ns = "n"}));
  EXPECT_TRUE(use_context(empty, "x"));
}

}  // namespace
}  // namespace coracle::ctl
