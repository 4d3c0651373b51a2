// SPDX-License-Identifier: Apache-2.0
// What is remembered of decisions: for whom and what, until when, and how much at most.
#include "daemon/auth/decision_memory.h"

#include <gtest/gtest.h>

#include <set>

namespace coracle::auth {
namespace {

User with_groups(std::string name, std::vector<std::string> groups) { return {std::move(name), "", std::move(groups), {}}; }
Attributes on_resource(std::string verb, std::string resource, std::string ns = "default", std::string sub = "",
                       std::string group = "") {
  return {std::move(verb), std::move(group), std::move(resource), std::move(sub), std::move(ns), "", "", true, ""};
}

TEST(DecisionMemory, has_one_key_for_what_roles_cannot_tell_apart) {
  const User jane = with_groups("jane", {"a", "b"});
  Attributes asked = on_resource("get", "pods"), named = asked;
  named.name = "web", named.field_selector = "metadata.name=web";
  EXPECT_EQ(DecisionMemory::key_of(jane, asked), DecisionMemory::key_of(jane, named));
  User other = jane;
  other.uid = "u", other.extra = {{"scopes", {"x"}}};
  EXPECT_EQ(DecisionMemory::key_of(jane, asked), DecisionMemory::key_of(other, asked));
}

TEST(DecisionMemory, has_another_key_for_everything_else) {
  using namespace std::string_literals;
  Attributes path = on_resource("get", "");
  path.is_resource = false, path.path = "/version", path.ns = "";
  Attributes other_path = path;
  other_path.path = "/version/";
  const std::pair<User, Attributes> all[] = {{with_groups("jane", {"a", "b"}), on_resource("get", "pods")},
                                             {with_groups("jane", {"ab"}), on_resource("get", "pods")},
                                             {with_groups("jane", {"b", "a"}), on_resource("get", "pods")},
                                             {with_groups("jane", {}), on_resource("get", "pods")},
                                             {with_groups("janea", {"b"}), on_resource("get", "pods")},
                                             {with_groups("jane\0\1"s, {}), on_resource("get", "pods")},
                                             {with_groups("jane", {"\0\1"s}), on_resource("get", "pods")},
                                             {with_groups("jane", {}), on_resource("list", "pods")},
                                             {with_groups("jane", {}), on_resource("get", "pods", "")},
                                             {with_groups("jane", {}), on_resource("get", "pods", "d")},
                                             {with_groups("jane", {}), on_resource("get", "pods", "default", "log")},
                                             {with_groups("jane", {}), on_resource("get", "podslog", "default")},
                                             {with_groups("jane", {}), on_resource("get", "pods", "default", "", "apps")},
                                             {with_groups("jane", {}), path},
                                             {with_groups("jane", {}), other_path}};
  std::set<std::string> keys;
  for (const auto& [user, asked] : all) EXPECT_TRUE(keys.insert(DecisionMemory::key_of(user, asked)).second) << user.name;
}

TEST(DecisionMemory, has_no_key_where_it_would_be_long) {
  User jane = with_groups("jane", std::vector<std::string>(100'000, "group"));
  EXPECT_EQ(DecisionMemory::key_of(jane, on_resource("get", "pods")), "");
  EXPECT_EQ(DecisionMemory::key_of(with_groups(std::string(kDecisionKeyBytesMax, 'x'), {}), on_resource("get", "pods")), "");
}

TEST(DecisionMemory, forgets_everything_when_a_generation_begins) {
  DecisionMemory memory;
  EXPECT_FALSE(memory.find(1, "a"));
  memory.put(1, "a", {true, "because"});
  ASSERT_TRUE(memory.find(1, "a"));
  EXPECT_TRUE(memory.find(1, "a")->allowed);
  EXPECT_EQ(memory.find(1, "a")->reason, "because");
  EXPECT_FALSE(memory.find(1, "b"));
  EXPECT_FALSE(memory.find(2, "a"));
  EXPECT_EQ(memory.size().entries, 0u);
  EXPECT_EQ(memory.size().bytes, 0u);
}

// A request that was overtaken by a change of the roles neither brings back what they were nor forgets what they are.
TEST(DecisionMemory, refuses_what_older_generations_say) {
  DecisionMemory memory;
  memory.put(2, "a", {false, ""});
  memory.put(1, "a", {true, "old"});
  memory.put(1, "b", {true, "old"});
  EXPECT_FALSE(memory.find(1, "a"));
  ASSERT_TRUE(memory.find(2, "a"));
  EXPECT_FALSE(memory.find(2, "a")->allowed);
  EXPECT_FALSE(memory.find(2, "b"));
}

TEST(DecisionMemory, keeps_within_its_entries_and_remembers_what_is_used) {
  DecisionMemory memory({10, 1 << 20});
  memory.put(1, "used", {true, ""});
  for (int i = 0; i < 1000; i++) {
    memory.put(1, "key" + std::to_string(i), {true, ""});
    EXPECT_LE(memory.size().entries, 10u);
    ASSERT_TRUE(memory.find(1, "used")) << i;
  }
  EXPECT_TRUE(memory.find(1, "key999"));
  EXPECT_FALSE(memory.find(1, "key0"));
}

TEST(DecisionMemory, keeps_within_its_bytes) {
  DecisionMemory memory({1 << 20, 10'000});
  for (int i = 0; i < 1000; i++) {
    memory.put(1, "key" + std::to_string(i), {false, std::string(size_t(i % 500), 'x')});
    EXPECT_LE(memory.size().bytes, 10'000u);
    memory.find(1, "key" + std::to_string(i / 2));
    EXPECT_LE(memory.size().bytes, 10'000u);
  }
  EXPECT_GT(memory.size().entries, 2u);
  memory.put(1, "long", {false, std::string(5'000, 'x')});
  EXPECT_FALSE(memory.find(1, "long"));
  memory.find(2, "");
  EXPECT_EQ(memory.size().bytes, 0u);
}

}  // namespace
}  // namespace coracle::auth
