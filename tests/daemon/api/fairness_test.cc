// SPDX-License-Identifier: Apache-2.0
// Who may have the server, who waits, who is told to come back.
#include "daemon/api/fairness.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/world.h"

namespace coracle::api {
namespace {

using std::chrono::milliseconds;

User user(const std::string& name, std::vector<std::string> groups) { return {name, "", std::move(groups), {}}; }

access::Attributes on(const std::string& verb, const std::string& resource, const std::string& group = {}, const std::string& ns = "default") {
  access::Attributes attributes;
  attributes.verb = verb, attributes.resource = resource, attributes.group = group, attributes.ns = ns;
  return attributes;
}

access::Attributes at(const std::string& path) {
  access::Attributes attributes;
  attributes.verb = "get", attributes.path = path, attributes.is_resource = false;
  return attributes;
}

// One limited level "l" and one schema "s" that takes everybody, told apart by user; and another level that may lend.
FlowRules rules(int shares, const std::string& response, int other_shares = 0, int lendable = 0) {
  FlowRules made;
  auto level = [&](const std::string& name, int level_shares, int percent) {
    made.levels.push_back(MUST(parse_json(R"({"metadata":{"name":")" + name + R"("},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":)" +
                                          std::to_string(level_shares) + R"(,"lendablePercent":)" + std::to_string(percent) +
                                          R"(,"limitResponse":{"type":")" + response + R"(","queuing":{"queueLengthLimit":5}}}}})")));
  };
  level("l", shares, 0);
  if (other_shares) level("other", other_shares, lendable);
  made.schemas.push_back(MUST(parse_json(R"({"metadata":{"name":"s"},"spec":{"priorityLevelConfiguration":{"name":"l"},"matchingPrecedence":1,
      "distinguisherMethod":{"type":"ByUser"},"rules":[{"subjects":[{"kind":"User","user":{"name":"*"}}],
      "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}]}]}})")));
  return made;
}

TEST(Fairness, standard_rules_know_who_is_who) {
  Fairness fairness(standard_rules(), {});
  struct Row {
    User who;
    access::Attributes what;
    const char *schema, *level;
    bool exempt;
  };
  const std::vector<std::string> accounts = {"system:serviceaccounts", "system:serviceaccounts:x", "system:authenticated"};
  for (const Row& row : {
           Row{user("admin", {"system:masters", "system:authenticated"}), on("list", "pods"), "exempt", "exempt", true},
           Row{user("system:anonymous", {"system:unauthenticated"}), at("/readyz"), "probes", "exempt", true},
           Row{user("system:anonymous", {"system:unauthenticated"}), at("/version"), "global-default", "global-default", false},
           Row{user("system:node:a", {"system:nodes", "system:authenticated"}), on("update", "leases", "coordination.k8s.io"), "system-node-high", "node-high", false},
           Row{user("system:node:a", {"system:nodes", "system:authenticated"}), on("list", "pods"), "system-nodes", "system", false},
           Row{user("system:serviceaccount:x:y", accounts), on("list", "pods"), "service-accounts", "workload-low", false},
           Row{user("system:serviceaccount:kube-system:y", accounts), on("update", "leases", "coordination.k8s.io"), "system-leader-election", "leader-election", false},
           Row{user("system:serviceaccount:kube-system:y", accounts), on("list", "pods"), "kube-system-service-accounts", "workload-high", false},
           Row{user("jane", {"system:authenticated"}), on("create", "configmaps"), "global-default", "global-default", false},
           Row{user("jane", {"system:authenticated"}), on("get", "nodes", "", ""), "global-default", "global-default", false},
           Row{user("nobody", {}), on("get", "pods"), "", "", false},
       }) {
    Classified found = fairness.classify(row.who, row.what);
    EXPECT_EQ(found.schema, row.schema) << row.who.name;
    EXPECT_EQ(found.level, row.level) << row.who.name;
    EXPECT_EQ(found.exempt, row.exempt) << row.who.name;
    EXPECT_EQ(found.schema_uid.size(), found.schema.empty() ? 0u : 36u);
  }
}

TEST(Fairness, a_level_that_does_not_queue_refuses_and_recovers) {
  Fairness fairness(rules(1, "Reject"), {2, 10, milliseconds(50)});
  Classified jane = fairness.classify(user("jane", {}), on("get", "pods"));
  {
    auto one = fairness.enter(jane), two = fairness.enter(jane), three = fairness.enter(jane);
    EXPECT_TRUE(one && two);
    ASSERT_FALSE(three);
    EXPECT_EQ(three.error().code(), Code::too_many_requests);
    EXPECT_EQ(three.error().details()->retry_after_seconds, 1);
  }
  EXPECT_TRUE(fairness.enter(jane));
  EXPECT_EQ(fairness.counts()[0].rejected, 1u);
  EXPECT_EQ(fairness.counts()[0].executing, 0);
}

TEST(Fairness, who_waits_too_long_is_told_to_come_back) {
  Fairness fairness(rules(1, "Queue"), {1, 10, milliseconds(30)});
  Classified jane = fairness.classify(user("jane", {}), on("get", "pods"));
  auto one = fairness.enter(jane);
  EXPECT_FALSE(fairness.enter(jane));
  EXPECT_EQ(fairness.counts()[0].waiting, 0) << "it has left the queue";
}

TEST(Fairness, flows_are_served_in_turn_and_a_crowd_does_not_hold_up_others) {
  Fairness fairness(rules(1, "Queue"), {1, 10, milliseconds(20000)});
  Classified crowd = fairness.classify(user("crowd", {}), on("get", "pods")), jane = fairness.classify(user("jane", {}), on("get", "pods"));
  std::optional<Fairness::Seat> first(MUST(fairness.enter(crowd)));
  Guarded<std::string> order;
  std::vector<std::thread> threads;
  auto waits = [&](const Classified& who, char name) {
    int before = fairness.counts()[0].waiting;
    threads.emplace_back([&, who, name] {
      auto seat = fairness.enter(who);
      order.with([&](std::string& text) { text += seat ? name : '!'; });
    });
    while (fairness.counts()[0].waiting == before) std::this_thread::yield();
  };
  for (int i = 0; i < 5; i++) waits(crowd, 'c');
  waits(jane, 'j');
  EXPECT_FALSE(fairness.enter(crowd)) << "its queue is full";
  first.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order.with([](const std::string& text) { return text; }).find('j'), 1u) << "second, not sixth";
}

TEST(Fairness, what_others_leave_idle_is_lent) {
  Fairness lends(rules(1, "Reject", 3, 100), {4, 10, milliseconds(50)}), keeps(rules(1, "Reject", 3, 0), {4, 10, milliseconds(50)});
  for (auto [fairness, want] : {std::pair(&lends, 4), std::pair(&keeps, 1)}) {
    Classified jane = fairness->classify(user("jane", {}), on("get", "pods"));
    std::vector<Fairness::Seat> seats;
    for (int i = 0; i < 6; i++)
      if (auto seat = fairness->enter(jane)) seats.push_back(*std::move(seat));
    EXPECT_EQ(int(seats.size()), want);
  }
}

TEST(Fairness, rules_change_under_those_who_run) {
  Fairness fairness(rules(1, "Reject"), {1, 10, milliseconds(50)});
  Classified jane = fairness.classify(user("jane", {}), on("get", "pods"));
  {
    auto seat = fairness.enter(jane);
    ASSERT_TRUE(seat);
    fairness.set_rules(standard_rules());
    EXPECT_EQ(fairness.classify(user("jane", {"system:authenticated"}), on("get", "pods")).level, "global-default");
  }
  EXPECT_TRUE(fairness.enter(jane)) << "of a level that is gone: not limited";
}

TEST(Fairness, the_answer_says_by_which_rules_it_came_and_administrators_never_wait) {
  World world;
  KeyPair admin = world.server->admin();
  RawClient client(world.port(), &admin), nobody(world.port());
  RawAnswer answer = client.get("/api/v1/namespaces"), probe = nobody.get("/readyz"), other = nobody.get("/version");
  EXPECT_EQ(answer.header("X-Kubernetes-Pf-Flowschema-Uid").size(), 36u);
  EXPECT_EQ(answer.header("X-Kubernetes-Pf-Prioritylevel-Uid"), probe.header("X-Kubernetes-Pf-Prioritylevel-Uid")) << "both are exempt";
  EXPECT_NE(answer.header("X-Kubernetes-Pf-Prioritylevel-Uid"), other.header("X-Kubernetes-Pf-Prioritylevel-Uid"));
  EXPECT_EQ(client.get("/apis", "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n").header("X-Kubernetes-Pf-Flowschema-Uid").size(), 36u);
}

}  // namespace
}  // namespace coracle::api
