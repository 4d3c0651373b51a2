// SPDX-License-Identifier: Apache-2.0
// Authorization: administrators, default roles, roles and bindings that change, and the messages of refusals.
#include "daemon/auth/authorizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/daemon/auth/auth_fixture.h"
#include "tests/processor_time.h"

namespace coracle::auth {
namespace {

const User kNobody = user("system:anonymous", {"system:unauthenticated"});

TEST(Authorizer, lets_administrators_do_everything) {
  AuthFixture fixture;
  EXPECT_TRUE(fixture.may(kAdmin, "delete", "nodes", "", "x"));
  EXPECT_TRUE(fixture.may_path(kAdmin, "post", "/anything"));
}

TEST(Authorizer, gives_everybody_the_default_rights_only) {
  AuthFixture fixture;
  for (const char* path : {"/livez", "/readyz", "/healthz", "/version"}) {
    EXPECT_TRUE(fixture.may_path(kNobody, "get", path)) << path;
    EXPECT_TRUE(fixture.may_path(kJane, "get", path)) << path;
  }
  for (const char* path : {"/api", "/apis/apps/v1", "/openapi/v3"}) {
    EXPECT_FALSE(fixture.may_path(kNobody, "get", path)) << path;
    EXPECT_TRUE(fixture.may_path(kJane, "get", path)) << path;
  }
  EXPECT_FALSE(fixture.may_path(kJane, "get", "/metrics"));
  EXPECT_TRUE(fixture.may_path(user("prometheus", {"system:monitoring"}), "get", "/metrics"));
  EXPECT_TRUE(fixture.may(kJane, "create", "selfsubjectaccessreviews", "", "", "authorization.k8s.io"));
  EXPECT_TRUE(fixture.may(kJane, "create", "selfsubjectreviews", "", "", "authentication.k8s.io"));
  EXPECT_FALSE(fixture.may(kJane, "create", "subjectaccessreviews", "", "", "authorization.k8s.io"));
  EXPECT_FALSE(fixture.may(kJane, "list", "pods"));
  User account = account_user("default", "default", "u");
  EXPECT_FALSE(fixture.may(account, "list", "pods"));
  EXPECT_TRUE(fixture.may_path(account, "get", "/openid/v1/jwks"));
  EXPECT_FALSE(fixture.may_path(kJane, "get", "/openid/v1/jwks"));
}

TEST(Authorizer, follows_bindings_at_once) {
  AuthFixture fixture;
  fixture.make(
      kRole,
      R"({"metadata":{"name":"reader","namespace":"default"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})");
  EXPECT_FALSE(fixture.may(kJane, "get", "pods"));
  fixture.make(
      kRoleBinding,
      R"({"metadata":{"name":"b","namespace":"default"},"roleRef":{"kind":"Role","name":"reader"},"subjects":[{"kind":"User","name":"jane"}]})");
  EXPECT_TRUE(fixture.may(kJane, "get", "pods"));
  EXPECT_EQ(fixture.decide(kJane, "get", "pods").reason,
            R"(RBAC: allowed by RoleBinding "b/default" of Role "reader" to User "jane")");
  EXPECT_FALSE(fixture.may(kJane, "get", "pods", "kube-system"));
  EXPECT_FALSE(fixture.may(kJane, "get", "pods", ""));
  EXPECT_FALSE(fixture.may(user("john"), "get", "pods"));
  MUST(
      fixture.try_merge(kRole, {"default", "reader"}, R"({"rules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]})"));
  EXPECT_FALSE(fixture.may(kJane, "get", "pods"));
  EXPECT_TRUE(fixture.may(kJane, "list", "pods"));
  MUST(fixture.registry().remove(kRoleBinding, {"default", "b"}, {}, {}));
  EXPECT_FALSE(fixture.may(kJane, "list", "pods"));
}

// Decisions are remembered, and each change of what they rest on ends that with the next request.
TEST(Authorizer, remembers_until_a_role_or_a_binding_changes) {
  AuthFixture fixture;
  const std::string reader =
      R"({"metadata":{"name":"reader","namespace":"default"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})";
  const std::string binding =
      R"({"metadata":{"name":"b","namespace":"default"},"roleRef":{"kind":"Role","name":"reader"},"subjects":[{"kind":"User","name":"jane"}]})";
  auto expect_remembered = [&](bool may, const char* when) {
    EXPECT_EQ(fixture.may(kJane, "get", "pods"), may) << when;
    const size_t entries = fixture.authorizer.remembered().entries;
    EXPECT_GT(entries, 0u) << when;
    for (const char* name : {"", "a", "b"}) EXPECT_EQ(fixture.may(kJane, "get", "pods", "default", name), may) << when;
    EXPECT_EQ(fixture.authorizer.remembered().entries, entries) << when << ": the name is of no importance";
  };
  expect_remembered(false, "nothing is bound");
  fixture.make(kRoleBinding, binding);
  expect_remembered(false, "the role is missing");
  EXPECT_NE(fixture.decide(kJane, "get", "pods").reason, "");
  fixture.make(kRole, reader);
  expect_remembered(true, "the role is there");
  MUST(
      fixture.try_merge(kRole, {"default", "reader"}, R"({"rules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]})"));
  expect_remembered(false, "the role changed");
  MUST(fixture.try_merge(kRole, {"default", "reader"}, R"({"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})"));
  expect_remembered(true, "the role changed back");
  MUST(fixture.try_merge(kRoleBinding, {"default", "b"}, R"({"subjects":[{"kind":"User","name":"john"}]})"));
  expect_remembered(false, "the binding is of another user");
  EXPECT_TRUE(fixture.may(user("john"), "get", "pods"));
  MUST(fixture.try_merge(kRoleBinding, {"default", "b"}, R"({"subjects":[{"kind":"Group","name":"readers"}]})"));
  EXPECT_FALSE(fixture.may(user("john"), "get", "pods"));
  EXPECT_TRUE(fixture.may(user("john", {"readers"}), "get", "pods"));
  EXPECT_FALSE(fixture.may(user("john"), "get", "pods")) << "in no group again";
  MUST(fixture.registry().remove(kRole, {"default", "reader"}, {}, {}));
  EXPECT_FALSE(fixture.may(user("john", {"readers"}), "get", "pods"));
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"all"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"jane"}]})");
  expect_remembered(true, "bound in the whole cluster");
  MUST(fixture.registry().remove(kClusterRoleBinding, {"", "all"}, {}, {}));
  expect_remembered(false, "no longer");
}

TEST(Authorizer, does_not_remember_what_depends_on_the_name) {
  AuthFixture fixture;
  fixture.make(kRole, R"({"metadata":{"name":"one","namespace":"default"},"rules":[
    {"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["mine"]},
    {"verbs":["list"],"apiGroups":[""],"resources":["secrets"]}]})");
  fixture.make(
      kRoleBinding,
      R"({"metadata":{"name":"b","namespace":"default"},"roleRef":{"kind":"Role","name":"one"},"subjects":[{"kind":"User","name":"jane"}]})");
  for (int turn = 0; turn < 2; turn++) {
    EXPECT_TRUE(fixture.may(kJane, "get", "secrets", "default", "mine"));
    EXPECT_FALSE(fixture.may(kJane, "get", "secrets", "default", "other"));
    EXPECT_FALSE(fixture.may(kJane, "get", "secrets"));
    EXPECT_EQ(fixture.authorizer.remembered().entries, turn == 0 ? 0u : 1u);
    EXPECT_TRUE(fixture.may(kJane, "list", "secrets"));
  }
}

TEST(Authorizer, remembers_no_more_than_it_may) {
  AuthFixture fixture;
  for (size_t i = 0; i < 3 * kDecisionsRememberedMax; i++) {
    fixture.may(user("somebody" + std::to_string(i)), "get", "pods", std::string(i % 200, 'n'));
    ASSERT_LE(fixture.authorizer.remembered().entries, kDecisionsRememberedMax);
    ASSERT_LE(fixture.authorizer.remembered().bytes, kDecisionBytesRememberedMax);
  }
}

TEST(Authorizer, knows_groups_and_accounts_and_roles_of_the_cluster_in_one_namespace) {
  AuthFixture fixture;
  fixture.make(
      kRoleBinding,
      R"({"metadata":{"name":"v","namespace":"default"},"roleRef":{"kind":"ClusterRole","name":"system:aggregate-to-view"},
      "subjects":[{"kind":"Group","name":"dev"},{"kind":"ServiceAccount","name":"robot"},{"kind":"ServiceAccount","name":"other","namespace":"kube-system"}]})");
  EXPECT_TRUE(fixture.may(user("a", {"dev"}), "list", "pods"));
  EXPECT_FALSE(fixture.may(user("dev"), "list", "pods")) << "a group is no user";
  EXPECT_TRUE(fixture.may(account_user("default", "robot", ""), "watch", "services"));
  EXPECT_FALSE(fixture.may(account_user("kube-system", "robot", ""), "watch", "services"));
  EXPECT_TRUE(fixture.may(account_user("kube-system", "other", ""), "watch", "services"));
  EXPECT_FALSE(fixture.may(user("a", {"dev"}), "list", "secrets"));
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"all"},"roleRef":{"kind":"ClusterRole","name":"system:aggregate-to-view"},"subjects":[{"kind":"Group","name":"ops"}]})");
  EXPECT_TRUE(fixture.may(user("o", {"ops"}), "list", "pods", ""));
  EXPECT_EQ(fixture.decide(user("o", {"ops"}), "list", "pods", "kube-system").reason,
            R"(RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "system:aggregate-to-view" to Group "ops")");
}

TEST(Authorizer, names_the_role_that_is_missing) {
  AuthFixture fixture;
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"dangling"},"roleRef":{"kind":"ClusterRole","name":"gone"},"subjects":[{"kind":"User","name":"jane"}]})");
  Attributes asked{"get", "", "pods", "log", "default", "x", "", true, ""};
  EXPECT_EQ(denial(kJane, asked, fixture.authorizer.authorize(kJane, asked).reason).text(),
            R"(pods "x" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "default": )"
            R"(RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found)");
}

TEST(Authorizer, tells_what_somebody_holds) {
  AuthFixture fixture;
  fixture.make(
      kRoleBinding,
      R"({"metadata":{"name":"v","namespace":"default"},"roleRef":{"kind":"ClusterRole","name":"system:auth-delegator"},"subjects":[{"kind":"User","name":"jane"}]})");
  auto held = fixture.authorizer.rules_for(kJane, "default");
  EXPECT_FALSE(held.incomplete);
  bool reviews = std::any_of(held.rules.begin(), held.rules.end(),
                             [](const Rule& rule) { return rule.resources == std::vector<std::string>{"tokenreviews"}; });
  EXPECT_TRUE(reviews);
  EXPECT_GT(held.rules.size(), fixture.authorizer.rules_for(kJane, "kube-system").rules.size());
  EXPECT_TRUE(fixture.authorizer.rules_for(user("system:node:n", {"system:nodes"}), "default").incomplete);
}

TEST(Authorizer, survives_more_changes_than_its_watches_hold) {
  AuthFixture fixture;
  EXPECT_FALSE(fixture.may(kJane, "get", "pods"));
  registry::Writer internal;
  internal.internal = true;
  for (int i = 0; i < 1500; ++i)
    MUST(fixture.registry().create(kRole, {"default", ""},
                                   AuthFixture::parse(R"({"metadata":{"name":"r)" + std::to_string(i) +
                                                      R"("},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})"),
                                   internal));
  fixture.make(
      kRoleBinding,
      R"({"metadata":{"name":"b","namespace":"default"},"roleRef":{"kind":"Role","name":"r1499"},"subjects":[{"kind":"User","name":"jane"}]})");
  EXPECT_TRUE(fixture.may(kJane, "get", "pods"));
}

TEST(Authorizer, answers_in_microseconds) {
  AuthFixture fixture;
  for (int i = 0; i < 200; ++i) {
    std::string name = "team" + std::to_string(i);
    fixture.make(
        kRoleBinding,
        R"({"metadata":{"name":")" + name +
            R"(","namespace":"default"},"roleRef":{"kind":"ClusterRole","name":"system:aggregate-to-edit"},"subjects":[{"kind":"Group","name":")" +
            name + R"("}]})");
  }
  constexpr int kRounds = 2000;
  std::vector<User> members;  // another one for each: nothing is remembered of it
  for (int i = 0; i < kRounds; ++i) members.push_back(user("m" + std::to_string(i), {"team7", "system:authenticated"}));
  auto begin = processor_time_of_thread();
  for (const User& member : members) EXPECT_TRUE(fixture.may(member, "create", "deployments", "default", "", "apps"));
  auto each = (processor_time_of_thread() - begin) / kRounds;
  EXPECT_LT(each, std::chrono::microseconds(500)) << "with space for a slow machine and a build without optimisation";
}

TEST(RoleIndex, asks_a_role_once_however_many_bindings_give_it) {
  AuthFixture fixture;
  RoleIndex index(fixture.registry().engine());
  auto bind = [&](const std::string& name, const std::string& role) {
    fixture.make(kRoleBinding, R"({"metadata":{"namespace":"default","name":")" + name +
                                   R"("},"roleRef":{"kind":"Role","name":")" + role +
                                   R"("},"subjects":[{"kind":"User","name":"jane"},{"kind":"User","name":"jane"}]})");
  };
  auto granted = [&] {
    std::vector<std::string> out;
    index.visit(user("jane", {}), "default", [&](const Grant& grant) {
      out.push_back(grant.role.name + " by " + grant.binding + (grant.rules ? "" : ", which is not there"));
      return true;
    });
    return out;
  };
  using Texts = std::vector<std::string>;
  fixture.make(kRole, R"({"metadata":{"name":"reader","namespace":"default"}})");
  for (const char* name : {"c", "a", "b"}) bind(name, "reader");
  bind("a2", "none");
  EXPECT_EQ(granted(), (Texts{"none by a2/default, which is not there", "reader by a/default"}));
  MUST(fixture.registry().remove(kRoleBinding, {"default", "a"}, {}, {}));
  EXPECT_EQ(granted(), (Texts{"none by a2/default, which is not there", "reader by b/default"}));
  for (const char* name : {"a2", "b", "c"}) MUST(fixture.registry().remove(kRoleBinding, {"default", name}, {}, {}));
  EXPECT_EQ(granted(), Texts{});
}

// With one visit for each group and role, these would be thirty million, and a gigabyte.
TEST(RoleIndex, asks_a_role_once_however_many_groups_have_it) {
  AuthFixture fixture;
  constexpr int kMany = 300;
  registry::Writer internal;
  internal.internal = true;
  std::string subjects;
  for (int i = 0; i < kMany; ++i)
    subjects += (i ? "," : "") + std::string(R"({"kind":"Group","name":"g)") + std::to_string(i) + R"("})";
  for (int i = 0; i < kMany; ++i)
    MUST(fixture.registry().create(
        kRoleBinding, {"default", ""},
        AuthFixture::parse(R"({"metadata":{"name":"b)" + std::to_string(i) +
                           R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r)" +
                           std::to_string(i % 100) + R"("},"subjects":[)" + subjects + "]}"),
        internal));
  User member = user("m", {});
  for (int i = 0; i < 1000 * kMany; ++i) member.groups.push_back("g" + std::to_string(i % kMany));
  RoleIndex index(fixture.registry().engine());
  std::vector<std::string> granted;
  index.visit(member, "default", [&](const Grant& grant) {
    granted.push_back(grant.role.name + " " + grant.subject);
    return true;
  });
  EXPECT_EQ(granted.size(), 100u);
  EXPECT_EQ(granted.front(), R"(r0 Group "g0")");
}

// A role may have many rules: other requests do not wait while they are evaluated.
TEST(RoleIndex, can_be_asked_while_rules_are_looked_at) {
  AuthFixture fixture;
  RoleIndex index(fixture.registry().engine());
  size_t asked = 0;
  index.visit(kJane, "default", [&](const Grant& grant) {
    if (grant.rules && index.rules_of(grant.role, "default")) ++asked;
    return true;
  });
  EXPECT_GT(asked, 0u);
}

// At every moment the binding is the user's or the group's. Another asker may refresh the index between two looks of one.
TEST(RoleIndex, does_not_miss_a_binding_whose_subject_changes) {
  constexpr int kChanges = 400;
  AuthFixture fixture;
  fixture.make(
      kRoleBinding,
      R"({"metadata":{"name":"b","namespace":"default"},"roleRef":{"kind":"Role","name":"reader"},"subjects":[{"kind":"Group","name":"g"}]})");
  const User jane = user("jane", {"system:authenticated", "g"});
  RoleIndex index(fixture.registry().engine());
  std::atomic<int> missed = 0, asked = 0;
  {
    std::vector<std::jthread> askers;
    for (int i = 0; i < 3; ++i)
      askers.emplace_back([&](std::stop_token stop) {
        while (!stop.stop_requested()) {
          bool found = false;
          index.visit(jane, "default", [&](const Grant& grant) {
            found = grant.binding == "b/default";
            return !found;
          });
          ++asked;
          if (!found) ++missed;
        }
      });
    for (int i = 0; i < kChanges; ++i) {
      const char* kind = i % 2 == 0 ? "User" : "Group";
      const char* who = i % 2 == 0 ? "jane" : "g";
      MUST(fixture.try_merge(kRoleBinding, {"default", "b"},
                             std::string(R"({"subjects":[{"kind":")") + kind + R"(","name":")" + who + R"("}]})"));
    }
  }
  EXPECT_GT(asked, 0);
  EXPECT_EQ(missed, 0) << "of " << asked;
}

// The same for groups that are too many for one look. A visit during which few changes happen misses nothing, so a change waits
// until no more than these have begun since each asker's visit began.
TEST(RoleIndex, does_not_miss_a_binding_that_moves_among_many_groups) {
  constexpr int kChanges = 100, kGroups = 2000, kFew = 5;
  AuthFixture fixture;
  fixture.make(
      kRoleBinding,
      R"({"metadata":{"name":"b","namespace":"default"},"roleRef":{"kind":"Role","name":"reader"},"subjects":[{"kind":"Group","name":"g0"}]})");
  User member = user("m", {});
  for (int i = 0; i < kGroups; ++i) member.groups.push_back("g" + std::to_string(i));
  std::string subjects;  // of those between the first and the last group, so that these are looked up at different times
  for (int i = 900; i < 1100; ++i)
    subjects += (i > 900 ? "," : "") + std::string(R"({"kind":"Group","name":"g)") + std::to_string(i) + R"("})";
  for (int i = 0; i < 50; ++i)
    fixture.make(kRoleBinding, R"({"metadata":{"name":"other)" + std::to_string(i) +
                                   R"(","namespace":"default"},"roleRef":{"kind":"Role","name":"other)" + std::to_string(i) +
                                   R"("},"subjects":[)" + subjects + "]}");
  RoleIndex index(fixture.registry().engine());
  std::atomic<int> changes = 0, missed = 0, asked = 0;  // changes: that have begun
  std::atomic<int> known[2] = {0, 0};                   // by asker: the changes that had begun before its present or last visit
  {
    std::vector<std::jthread> askers;
    for (std::atomic<int>& mine : known)
      askers.emplace_back([&](std::stop_token stop) {
        while (!stop.stop_requested()) {
          mine = changes.load();
          mine.notify_all();
          bool found = false;
          index.visit(member, "default", [&](const Grant& grant) {
            found = grant.role.name == "reader";
            return !found;
          });
          ++asked;
          if (!found) ++missed;
        }
      });
    for (int i = 0; i < kChanges; ++i) {
      for (const std::atomic<int>& theirs : known)
        for (int seen; i - (seen = theirs) >= kFew;) theirs.wait(seen);
      ++changes;
      const int group = i % 2 == 0 ? kGroups - 1 : 0;
      MUST(fixture.try_merge(kRoleBinding, {"default", "b"},
                             R"({"subjects":[{"kind":"Group","name":"g)" + std::to_string(group) + R"("}]})"));
    }
  }
  EXPECT_GE(asked, kChanges / kFew);
  EXPECT_EQ(missed, 0) << "of " << asked;
}

}  // namespace
}  // namespace coracle::auth
