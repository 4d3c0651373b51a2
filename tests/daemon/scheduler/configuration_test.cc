// SPDX-License-Identifier: Apache-2.0
// A KubeSchedulerConfiguration: its effect, and the errors for invalid ones.
#include "daemon/scheduler/configuration.h"

#include <gtest/gtest.h>

#include "tests/daemon/scheduler/scheduler_fixture.h"

namespace coracle::scheduler {
namespace {

std::string error_of(const std::string& yaml) {
  auto read = read_configuration("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + yaml);
  return read ? "" : read.error().text();
}

TEST(Configuration, names_what_it_does_not_know) {
  struct Row {
    const char *yaml, *want;
  };
  for (const Row& row : {
           Row{"parallelism: 4\nleaderElection: {leaderElect: false}", ""},
           Row{"percentageOfNodesToScor: 3", "percentageOfNodesToScor: unknown field"},
           Row{"percentageOfNodesToScore: 300", "percentageOfNodesToScore: must be a number from 0 to 100, is 300"},
           Row{"podInitialBackoffSeconds: 20", "podMaxBackoffSeconds: must not be less than podInitialBackoffSeconds"},
           Row{"extenders: [{urlPrefix: 'http://x'}]", "extenders: not supported"},
           Row{"profiles: [{schedulerNam: a}]", "profiles[0].schedulerNam: unknown field"},
           Row{"profiles: [{schedulerName: a}, {schedulerName: a}]", "profiles[1].schedulerName: duplicate value \"a\""},
           Row{"profiles: [{plugins: {filtr: {}}}]", "profiles[0].plugins.filtr: unknown field"},
           Row{"profiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]",
               "profiles[0].plugins.filter.enabled[0].name: unknown plugin \"Nope\""},
           Row{"profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]",
               "profiles[0].plugins.score: plugin \"NodeName\" does not extend score plugin"},
           Row{"profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]",
               "profiles[0].plugins.bind: exactly one plugin is needed"},
           Row{"profiles: [{pluginConfig: [{name: NodeName, args: {}}]}]",
               "profiles[0].pluginConfig[0].args: plugin NodeName takes no arguments"},
           Row{"profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeigh: 1}}]}]",
               "profiles[0].pluginConfig[0].args.hardPodAffinityWeigh: unknown field"},
           Row{"profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}]",
               "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: must be a number from 0 to 100, is 101"},
           Row{"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Most}}}]}]",
               "profiles[0].pluginConfig[0].args.scoringStrategy.type: must be LeastAllocated, MostAllocated or "
               "RequestedToCapacityRatio"},
           Row{"profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, "
               "whenUnsatisfiable: DoNotSchedule}]}}]}]",
               "profiles[0].pluginConfig[0].args.defaultingType: must be List when there are defaultConstraints"},
       })
    EXPECT_EQ(error_of(row.yaml), row.want) << row.yaml;
  EXPECT_EQ(read_configuration("apiVersion: v1\nkind: KubeSchedulerConfiguration").error().text(),
            "apiVersion: must be kubescheduler.config.k8s.io/v1");
}

TEST(Configuration, plugins_can_be_taken_out_and_weighted) {
  SchedulerFixture without("profiles: [{plugins: {filter: {disabled: [{name: TaintToleration}]}}}]");
  without.cluster.put_node(node("n1", R"({"taints":[{"key":"a","effect":"NoSchedule"}]})"));
  EXPECT_EQ(without.decide(pod("p", "{}")).node, "n1");
  SchedulerFixture nowhere("profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]");
  nowhere.cluster.put_node(node("n1"));
  EXPECT_EQ(nowhere.decide(pod("p", asks("99", "1Gi"))).node, "n1");

  auto weight_of = [](const SchedulerFixture& fixture, Cluster& cluster, std::string_view plugin) {
    CycleState cycle(cluster.read(*pod("p", "{}")), cluster, fixture.lister);
    for (const auto& one : fixture.framework().score(cycle, cluster.nodes()))
      if (one.plugin->name() == plugin) return one.weight;
    return int64_t(-1);
  };
  EXPECT_EQ(weight_of(without, without.cluster, "TaintToleration"), 3);
  EXPECT_EQ(weight_of(without, without.cluster, "NodePreferAvoidPods"), -1);
  SchedulerFixture weighted(
      "profiles: [{plugins: {score: {enabled: [{name: TaintToleration, weight: 7}]}, multiPoint: {enabled: [{name: "
      "NodePreferAvoidPods, weight: 10000}]}}}]");
  weighted.cluster.put_node(node("n1"));
  EXPECT_EQ(weight_of(weighted, weighted.cluster, "TaintToleration"), 7);
  EXPECT_EQ(weight_of(weighted, weighted.cluster, "NodePreferAvoidPods"), 10000);
}

TEST(Configuration, profiles_have_names_and_arguments) {
  auto read = MUST(read_configuration(R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 60
profiles:
- {}
- schedulerName: packer
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
)"));
  EXPECT_EQ(read.backoff_first, std::chrono::seconds(2));
  EXPECT_EQ(read.backoff_longest, std::chrono::seconds(60));
  ASSERT_EQ(read.profiles.size(), 2u);
  EXPECT_EQ(read.profiles[0]->scheduler_name(), "default-scheduler");
  EXPECT_EQ(read.profiles[1]->scheduler_name(), "packer");
}

TEST(Configuration, resource_strategies_score_as_documented) {
  auto raw = [](const std::string& args, const std::string& cpu) {
    SchedulerFixture fixture("profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: " + args + "}}]}]");
    fixture.cluster.put_node(node("n1", "{}", "{}", R"({"cpu":"4","memory":"4Gi","pods":"9","example.com/gpu":"8"})"));
    return fixture
        .scores(pod("p", R"({"containers":[{"resources":{"requests":{"cpu":")" + cpu +
                             R"(","memory":"1Gi","example.com/gpu":"2"}}}]})"),
                "NodeResourcesFit")["n1"]
        .raw;
  };
  EXPECT_EQ(raw("{type: LeastAllocated, resources: [{name: cpu, weight: 3}, {name: memory, weight: 1}]}", "1"), 75);
  EXPECT_EQ(raw("{type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: memory, weight: 1}]}", "2"), 43);
  EXPECT_EQ(raw("{type: MostAllocated, resources: [{name: example.com/gpu}]}", "1"), 25);
  const std::string shape = "requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}";
  EXPECT_EQ(raw("{type: RequestedToCapacityRatio, resources: [{name: cpu}], " + shape + "}", "3"), 75);
  EXPECT_EQ(raw("{type: RequestedToCapacityRatio, resources: [{name: cpu}], requestedToCapacityRatio: {shape: [{utilization: 50, "
                "score: 10}, {utilization: 100, score: 0}]}}",
                "3"),
            50);
}

TEST(Configuration, only_as_many_nodes_are_looked_for_as_needed) {
  auto enough = [](const std::string& yaml, size_t nodes) { return SchedulerFixture(yaml).framework().enough(nodes); };
  EXPECT_EQ(enough("", 99), 99u);
  EXPECT_EQ(enough("", 150), 100u);
  EXPECT_EQ(enough("", 1000), 420u);
  EXPECT_EQ(enough("", 6000), 300u);
  EXPECT_EQ(enough("percentageOfNodesToScore: 100", 6000), 6000u);
  EXPECT_EQ(enough("percentageOfNodesToScore: 10\nprofiles: [{percentageOfNodesToScore: 50}]", 6000), 3000u);
}

}  // namespace
}  // namespace coracle::scheduler
