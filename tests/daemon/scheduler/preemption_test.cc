// SPDX-License-Identifier: Apache-2.0
// Preemption: victims, budgets, and the choice of the node.
#include <gtest/gtest.h>

#include "tests/daemon/scheduler/scheduler_fixture.h"

namespace coracle::scheduler {
namespace {

ObjectPtr ranked(const std::string& name, int64_t priority, const std::string& cpu, const std::string& labels = "{}",
                 const std::string& started = "2024-01-01T00:00:00Z", const std::string& more = "") {
  return pod(name, asks(cpu, "1Mi", R"(,"priority":)" + std::to_string(priority) + more), labels, "default", "",
             R"({"startTime":")" + started + "\"}");
}

std::string names(const PostFilterResult& result) {
  std::string out = result.node + ":";
  for (const PodInfoPtr& victim : result.victims) out += " " + victim->key.name;
  return out;
}

struct Preemption : testing::Test {
  SchedulerFixture fixture;
  void put_nodes(std::initializer_list<const char*> nodes) {
    for (const char* name : nodes) fixture.cluster.put_node(node(name));
  }
  std::string preemption_of(const ObjectPtr& pod) {
    Decision decision = fixture.decide(pod);
    EXPECT_EQ(decision.node, "");
    return names(decision.post_filter);
  }
};

TEST_F(Preemption, takes_the_fewest_and_least_important) {
  put_nodes({"n1"});
  fixture.place(ranked("low", 1, "1"), "n1");
  fixture.place(ranked("mid", 5, "1"), "n1");
  fixture.place(ranked("big", 3, "2"), "n1");
  EXPECT_EQ(preemption_of(ranked("p", 10, "1")), "n1: low");
  EXPECT_EQ(preemption_of(ranked("p", 10, "2")), "n1: big");  // mid is kept first; then big does not fit, then low does
  EXPECT_EQ(preemption_of(ranked("p", 4, "3")), "n1: big low");
  EXPECT_EQ(preemption_of(ranked("p", 4, "4")), ":");
  EXPECT_EQ(preemption_of(ranked("p", 1, "1")), ":");  // equal priorities do not preempt
  EXPECT_EQ(fixture.cluster.pods(), 3u);               // preemption was only evaluated
  EXPECT_EQ(fixture.cluster.node("n1")->requested.cpu_milli, 4000);
}

TEST_F(Preemption, says_why_not) {
  put_nodes({"n1"});
  fixture.place(ranked("low", 1, "4"), "n1");
  EXPECT_EQ(fixture.decide(ranked("p", 10, "1", "{}", "", R"(,"preemptionPolicy":"Never")")).message,
            "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never. node n1: cpu "
            "requested 1, free 0 of 4.");
  EXPECT_EQ(fixture.decide(ranked("p", 0, "1")).message,
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for "
            "incoming pod. node n1: cpu requested 1, free 0 of 4.");
  EXPECT_EQ(fixture.decide(ranked("p", 10, "1", "{}", "", R"(,"nodeSelector":{"a":"b"})")).message,
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are available: "
            "1 Preemption is not helpful for scheduling. "
            "node n1: wants a=b, does not have the label.");
}

TEST_F(Preemption, waits_for_victims_that_leave_already) {
  put_nodes({"n1", "n2"});
  fixture.place(pod("leaves", asks("4", "1Mi"), "{}", "default", R"(,"deletionTimestamp":"2024-01-01T00:00:00Z")",
                    R"({"conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}]})"),
                "n1");
  fixture.place(ranked("low", 1, "4"), "n2");
  auto preemptor = pod("p", asks("1", "1Mi", R"(,"priority":10)"), "{}", "default", "", R"({"nominatedNodeName":"n1"})");
  Decision decision = fixture.decide(preemptor);
  EXPECT_FALSE(decision.post_filter.eligible);
  EXPECT_NE(decision.message.find("not eligible due to a terminating pod on the nominated node."), std::string::npos)
      << decision.message;
}

TEST_F(Preemption, chooses_the_node_whose_victims_matter_least) {
  put_nodes({"n1", "n2"});
  auto two = [&](const ObjectPtr& first, const ObjectPtr& second) {
    fixture.place(first, "n1");
    fixture.place(second, "n2");
    std::string out = preemption_of(ranked("p", 10, "4"));
    fixture.cluster.remove_pod(first->uid());
    fixture.cluster.remove_pod(second->uid());
    return out;
  };
  EXPECT_EQ(two(ranked("a", 5, "4"), ranked("b", 3, "4")), "n2: b");
  EXPECT_EQ(two(ranked("a", 3, "4"), ranked("b", 5, "4")), "n1: a");
  EXPECT_EQ(two(ranked("a", 3, "4", "{}", "2024-01-01T00:00:00Z"), ranked("b", 3, "4", "{}", "2024-02-01T00:00:00Z")),
            "n2: b");                           // the one that started later
  fixture.place(ranked("more", 1, "1"), "n1");  // a second victim there, with the same highest priority
  EXPECT_EQ(two(ranked("a", 3, "3"), ranked("b", 3, "4")), "n2: b");
}

TEST_F(Preemption, spares_what_a_budget_protects) {
  put_nodes({"n1", "n2"});
  fixture.lister.put(kPodDisruptionBudget, {{"apiVersion", "policy/v1"},
                                            {"kind", "PodDisruptionBudget"},
                                            {"metadata", {{"name", "keep"}, {"namespace", "default"}}},
                                            {"spec", {{"selector", {{"matchLabels", {{"app", "db"}}}}}}},
                                            {"status", {{"disruptionsAllowed", 0}}}});
  fixture.place(ranked("db", 1, "4", R"({"app":"db"})"), "n1");
  fixture.place(ranked("web", 5, "4"), "n2");
  EXPECT_EQ(preemption_of(ranked("p", 10, "4")), "n2: web");  // although its priority is higher
  fixture.cluster.remove_node("n2");
  EXPECT_EQ(preemption_of(ranked("p", 10, "4")), "n1: db");  // budgets are respected where there is a choice
}

TEST_F(Preemption, space_made_is_kept_from_the_less_important) {
  put_nodes({"n1"});
  fixture.nominations["n1"].push_back(fixture.cluster.read(*ranked("boss", 10, "3")));
  EXPECT_EQ(fixture.decide(ranked("small", 1, "1")).node, "n1");
  EXPECT_EQ(fixture.decide(ranked("large", 1, "2")).node, "");
  EXPECT_EQ(fixture.decide(ranked("larger-boss", 20, "4")).node, "n1");
  auto boss = pod("boss", asks("3", "1Mi", R"(,"priority":10)"), "{}", "default", "", R"({"nominatedNodeName":"n1"})");
  EXPECT_EQ(fixture.decide(boss).node, "n1");
}

TEST_F(Preemption, may_be_for_company_not_only_for_space) {
  fixture.cluster.put_node(node("n1", "{}", R"({"zone":"z1"})"));
  fixture.place(ranked("loud", 1, "1", R"({"app":"loud"})"), "n1");
  const std::string shy =
      R"(,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"loud"}}}]}})";
  EXPECT_EQ(preemption_of(ranked("p", 10, "1", "{}", "", shy)), "n1: loud");
}

}  // namespace
}  // namespace coracle::scheduler
