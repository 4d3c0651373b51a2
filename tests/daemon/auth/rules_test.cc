// SPDX-License-Identifier: Apache-2.0
// Policy rules: what they allow, what they cover, and how missing rights are reported.
#include "daemon/auth/rules.h"

#include <gtest/gtest.h>

#include "tests/daemon/auth/attributes.h"

namespace coracle::auth {
namespace {

Rule rule(const char* text) { return read_rules(json::object{{"rules", json::array{MUST(parse_json(text))}}}).at(0); }

Attributes asks(std::string verb, std::string group, std::string resource, std::string name = "", std::string sub = "") {
  return {std::move(verb), std::move(group), std::move(resource), std::move(sub), "d", std::move(name), "", true, ""};
}

TEST(Rules, allow_what_they_say_and_nothing_else) {
  Rule pods = rule(R"({"verbs":["get","list"],"apiGroups":[""],"resources":["pods","pods/log"]})");
  EXPECT_TRUE(allows(pods, asks("get", "", "pods")));
  EXPECT_TRUE(allows(pods, asks("get", "", "pods", "x", "log")));
  EXPECT_FALSE(allows(pods, asks("get", "", "pods", "x", "exec")));
  EXPECT_FALSE(allows(pods, asks("watch", "", "pods")));
  EXPECT_FALSE(allows(pods, asks("get", "apps", "pods")));
  EXPECT_FALSE(allows(pods, asks("get", "", "podsx")));
  EXPECT_FALSE(allows(pods, asks("get", "", "pod")));
  EXPECT_FALSE(allows(pods, asks_path("get", "/pods")));
}

TEST(Rules, know_wildcards) {
  EXPECT_TRUE(allows(rule(R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})"), asks("x", "y", "z", "n", "s")));
  Rule scale = rule(R"({"verbs":["update"],"apiGroups":["*"],"resources":["*/scale"]})");
  EXPECT_TRUE(allows(scale, asks("update", "apps", "deployments", "x", "scale")));
  EXPECT_FALSE(allows(scale, asks("update", "apps", "deployments", "x")));
  EXPECT_FALSE(allows(scale, asks("update", "apps", "deployments", "x", "status")));
  Rule urls = rule(R"({"verbs":["get"],"nonResourceURLs":["/healthz","/api/*"]})");
  EXPECT_TRUE(allows(urls, asks_path("get", "/healthz")));
  EXPECT_TRUE(allows(urls, asks_path("get", "/api/v1")));
  EXPECT_FALSE(allows(urls, asks_path("get", "/api")));
  EXPECT_FALSE(allows(urls, asks_path("get", "/healthz/etcd")));
  EXPECT_FALSE(allows(urls, asks("get", "", "pods")));
}

TEST(Rules, with_names_are_for_those_alone) {
  Rule one = rule(R"({"verbs":["get","list"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"]})");
  EXPECT_TRUE(allows(one, asks("get", "", "secrets", "a")));
  EXPECT_FALSE(allows(one, asks("get", "", "secrets", "b")));
  EXPECT_FALSE(allows(one, asks("list", "", "secrets"))) << "a list has no name";
}

TEST(Rules, cover_less_than_themselves) {
  struct Row {
    const char *held, *wanted, *lacking;
  };
  for (
      const Row& row : {
          Row{R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})",
              R"({"verbs":["get"],"apiGroups":["a"],"resources":["b/c"],"resourceNames":["d"]})", ""},
          Row{R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})",
              R"({"verbs":["get","delete"],"apiGroups":["","apps"],"resources":["pods"]})",
              R"({APIGroups:["apps"], Resources:["pods"], Verbs:["get" "delete"]}{APIGroups:[""], Resources:["pods"], Verbs:["delete"]})"},
          Row{R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]})",
              R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})",
              R"({APIGroups:[""], Resources:["pods"], Verbs:["get"]})"},
          Row{R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})",
              R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]})", ""},
          Row{R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})",
              R"({"verbs":["*"],"apiGroups":[""],"resources":["pods"]})", R"({APIGroups:[""], Resources:["pods"], Verbs:["*"]})"},
          Row{R"({"verbs":["get"],"apiGroups":[""],"resources":["*/log"]})",
              R"({"verbs":["get"],"apiGroups":[""],"resources":["pods/log"]})", ""},
          Row{R"({"verbs":["get"],"nonResourceURLs":["/a/*"]})", R"({"verbs":["get"],"nonResourceURLs":["/a/b","/a/b/*","/c"]})",
              R"({NonResourceURLs:["/c"], Verbs:["get"]})"},
          Row{R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})", R"({"verbs":["get"],"nonResourceURLs":["/a"]})",
              R"({NonResourceURLs:["/a"], Verbs:["get"]})"},
      }) {
    Rules lacking = compacted(uncovered({rule(row.held)}, {rule(row.wanted)}));
    std::vector<std::string> told;
    for (const Rule& each : lacking) told.push_back(describe(each));
    std::string wanted(row.lacking);
    size_t size = 0;
    for (const std::string& each : told) {
      EXPECT_NE(wanted.find(each), wanted.npos) << each << " for " << row.wanted;
      size += each.size();
    }
    EXPECT_EQ(size, wanted.size()) << row.wanted;
  }
}

// The product of a thousand verbs, groups and resources is not enumerated.
TEST(Rules, that_stand_for_too_many_are_not_covered_unless_all_is) {
  Rule large;
  for (int i = 0; i < 1000; ++i) {
    std::string name = std::to_string(i);
    large.verbs.push_back("v" + name), large.groups.push_back("g" + name), large.resources.push_back("r" + name);
  }
  Rules some = {rule(R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})")};
  Rules all = {rule(R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})")};
  EXPECT_EQ(uncovered(some, {large}).size(), 1u);
  EXPECT_TRUE(uncovered(all, {large}).empty());
  bool compared_all = true;
  Rules lacking = uncovered(some, {large, some[0]}, &compared_all);
  ASSERT_EQ(lacking.size(), 1u) << "what comes behind it is compared";
  EXPECT_EQ(lacking[0].verbs.size(), 1000u);
  EXPECT_FALSE(compared_all);
  EXPECT_EQ(uncovered(all, {rule(R"({"verbs":["get"],"nonResourceURLs":["/a"]})")}).size(), 1u) << "URLs are not resources";
}

// A role of a megabyte against a user with as many rules: comparing each with each would take too long.
TEST(Rules, that_are_many_beside_much_that_is_held_are_not_compared) {
  Rule large = rule(R"({"verbs":["get"],"apiGroups":[""]})");
  for (int i = 0; i < 150'000; ++i) large.resources.push_back("r" + std::to_string(i));
  EXPECT_EQ(uncovered({large}, {large}).size(), 1u);
  EXPECT_TRUE(uncovered({large}, {rule(R"({"verbs":["get"],"apiGroups":[""],"resources":["r149999"]})")}).empty());
}

TEST(Rules, of_one_resource_are_put_together_by_all_their_verbs) {
  Rules many;
  for (int i = 0; i < 150'000; ++i) many.push_back({{"v" + std::to_string(i), "get"}, {""}, {"pods"}, {}, {}});
  Rules together = compacted(many);
  ASSERT_EQ(together.size(), 1u);
  EXPECT_EQ(together[0].verbs.size(), 150'001u) << "each once";
}

}  // namespace
}  // namespace coracle::auth
