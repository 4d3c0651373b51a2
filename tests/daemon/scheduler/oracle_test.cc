// SPDX-License-Identifier: Apache-2.0
// The scheduler against the oracle, on random clusters: the same nodes fit, with the same scores, and the chosen node is one of
// the best; where none fits, the victims are the same. Seeded; CORACLE_SEED repeats a run.
#include "tests/daemon/scheduler/oracle.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/daemon/scheduler/scheduler_fixture.h"

namespace coracle::scheduler {
namespace {

constexpr int kClusters = 1000;

struct Dice {
  std::mt19937_64 engine;
  explicit Dice(uint64_t seed) : engine(seed) {}
  int below(int n) { return int(engine() % uint64_t(n)); }
  bool once_in(int n) { return below(n) == 0; }
  std::string pick(std::initializer_list<const char*> from) { return *(from.begin() + below(int(from.size()))); }
  json::value text(std::initializer_list<const char*> from) { return json::string(pick(from)); }
};

json::value selector(Dice& dice) {
  switch (dice.below(6)) {
    case 0: return json::object{};
    case 1:
      return {{"matchExpressions",
               json::array{{{"key", "app"}, {"operator", "NotIn"}, {"values", json::array{dice.text({"web", "db"})}}}}}};
    case 2: return {{"matchExpressions", json::array{{{"key", "tier"}, {"operator", dice.text({"Exists", "DoesNotExist"})}}}}};
    default: return {{"matchLabels", {{"app", dice.text({"web", "db", "cache"})}}}};
  }
}

json::value pod_term(Dice& dice) {
  json::object term{{"topologyKey", dice.text({"topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"})}};
  if (!dice.once_in(12)) term["labelSelector"] = selector(dice);
  if (dice.once_in(4)) term["namespaces"] = json::array{dice.text({"default", "other"})};
  if (dice.once_in(5))
    term["namespaceSelector"] =
        dice.once_in(2) ? json::value(json::object{}) : json::value{{"matchLabels", {{"team", dice.text({"a", "b"})}}}};
  return term;
}

json::value node_term(Dice& dice) {
  json::array expressions, fields;
  for (int i = dice.below(3); i > 0; i--) {
    std::string op = dice.pick({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"});
    json::object one{
        {"key", op == "Gt" || op == "Lt" ? json::value("cores") : dice.text({"disk", "topology.kubernetes.io/zone", "rack"})},
        {"operator", op}};
    if (op == "In" || op == "NotIn") one["values"] = json::array{dice.text({"ssd", "z1", "r1"}), dice.text({"hdd", "z2", "r2"})};
    if (op == "Gt" || op == "Lt") one["values"] = json::array{dice.text({"2", "4", "8"})};
    expressions.push_back(std::move(one));
  }
  if (dice.once_in(6))
    fields.push_back({{"key", "metadata.name"},
                      {"operator", dice.text({"In", "NotIn"})},
                      {"values", json::array{dice.text({"n1", "n2", "n3"})}}});
  return {{"matchExpressions", std::move(expressions)}, {"matchFields", std::move(fields)}};
}

json::value node_of(Dice& dice, int number) {
  std::string name = "n" + std::to_string(number);
  json::object labels{{"kubernetes.io/hostname", name}};
  if (!dice.once_in(5)) labels["topology.kubernetes.io/zone"] = dice.text({"z1", "z2", "z3"});
  if (dice.once_in(2)) labels["disk"] = dice.text({"ssd", "hdd"});
  if (dice.once_in(2)) labels["rack"] = dice.text({"r1", "r2"});
  if (dice.once_in(2)) labels["cores"] = dice.text({"2", "4", "8", "many"});
  json::array taints;
  while (dice.once_in(4))
    taints.push_back({{"key", dice.text({"gpu", "soft", "dedicated"})},
                      {"value", dice.text({"", "x"})},
                      {"effect", dice.text({"NoSchedule", "PreferNoSchedule", "NoExecute"})}});
  json::object spec;
  if (!taints.empty()) spec["taints"] = std::move(taints);
  if (dice.once_in(12)) spec["unschedulable"] = true;
  json::array images;
  for (const char* image : {"web:latest", "db:1", "tool:2"})
    if (dice.once_in(2)) images.push_back({{"names", json::array{image}}, {"sizeBytes", (20 + dice.below(1500)) << 20}});
  json::object allocatable{{"cpu", dice.text({"2", "4", "3500m"})},
                           {"memory", dice.text({"2Gi", "4Gi", "6000Mi"})},
                           {"pods", dice.text({"4", "10"})},
                           {"ephemeral-storage", "10Gi"}};
  if (dice.once_in(3)) allocatable["example.com/gpu"] = dice.text({"1", "2"});
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", std::move(labels)}}},
          {"spec", std::move(spec)},
          {"status", {{"allocatable", std::move(allocatable)}, {"images", std::move(images)}}}};
}

json::value container(Dice& dice) {
  json::object requests, one{{"name", "c"}, {"image", dice.text({"web", "db:1", "tool:2", "none"})}};
  if (!dice.once_in(3)) requests["cpu"] = dice.text({"100m", "250m", "1", "0"});
  if (!dice.once_in(3)) requests["memory"] = dice.text({"64Mi", "256Mi", "1Gi"});
  if (dice.once_in(8)) requests["ephemeral-storage"] = "1Gi";
  if (dice.once_in(10)) requests["example.com/gpu"] = "1";
  one["resources"] = {{"requests", std::move(requests)}};
  if (dice.once_in(5)) {
    json::object port{{"containerPort", 80}, {"hostPort", 8000 + dice.below(2)}, {"protocol", dice.text({"TCP", "UDP"})}};
    if (dice.once_in(2)) port["hostIP"] = dice.text({"10.0.0.1", "10.0.0.2", "0.0.0.0"});
    one["ports"] = json::array{std::move(port)};
  }
  return one;
}

json::value pod_of(Dice& dice, const std::string& name, const std::string& node) {
  json::object labels, affinity, spec{{"containers", json::array{container(dice)}}};
  if (!dice.once_in(6)) labels["app"] = dice.text({"web", "db", "cache"});
  if (dice.once_in(3)) labels["tier"] = dice.text({"front", "back"});
  if (dice.once_in(4)) spec["containers"].get_array().push_back(container(dice));
  while (dice.once_in(4)) {
    json::value init = container(dice);
    if (dice.once_in(2)) init.get_object()["restartPolicy"] = "Always";
    if (!spec.contains("initContainers")) spec["initContainers"] = json::array{};
    spec["initContainers"].get_array().push_back(std::move(init));
  }
  if (dice.once_in(10)) spec["overhead"] = {{"cpu", "50m"}, {"memory", "32Mi"}};
  if (dice.once_in(12)) spec["resources"] = {{"requests", {{"cpu", "1500m"}}}};
  if (dice.once_in(6)) spec["nodeSelector"] = {{"disk", dice.text({"ssd", "hdd"})}};
  while (dice.once_in(2)) {
    if (!spec.contains("tolerations")) spec["tolerations"] = json::array{};
    json::object one{{"operator", dice.text({"Exists", "Equal"})}};
    if (one["operator"] == "Equal" || !dice.once_in(4))
      one["key"] = dice.text({"gpu", "soft", "dedicated", "node.kubernetes.io/unschedulable"});
    if (one["operator"] == "Equal" && dice.once_in(2)) one["value"] = "x";
    if (dice.once_in(2)) one["effect"] = dice.text({"NoSchedule", "PreferNoSchedule", "NoExecute"});
    spec["tolerations"].get_array().push_back(std::move(one));
  }
  if (dice.once_in(4)) {
    json::object about;
    if (dice.once_in(2))
      about["requiredDuringSchedulingIgnoredDuringExecution"] = {
          {"nodeSelectorTerms", json::array{node_term(dice), node_term(dice)}}};
    about["preferredDuringSchedulingIgnoredDuringExecution"] =
        json::array{{{"weight", 1 + dice.below(100)}, {"preference", node_term(dice)}},
                    {{"weight", 1 + dice.below(100)}, {"preference", node_term(dice)}}};
    affinity["nodeAffinity"] = std::move(about);
  }
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    if (!dice.once_in(4)) continue;
    json::object about;
    if (dice.once_in(2)) about["requiredDuringSchedulingIgnoredDuringExecution"] = json::array{pod_term(dice)};
    if (dice.once_in(6) && about.size())
      about["requiredDuringSchedulingIgnoredDuringExecution"].get_array().push_back(pod_term(dice));
    if (dice.once_in(2))
      about["preferredDuringSchedulingIgnoredDuringExecution"] =
          json::array{{{"weight", 1 + dice.below(100)}, {"podAffinityTerm", pod_term(dice)}}};
    affinity[kind] = std::move(about);
  }
  if (!affinity.empty()) spec["affinity"] = std::move(affinity);
  while (dice.once_in(3)) {
    json::object one{{"maxSkew", 1 + dice.below(3)},
                     {"topologyKey", dice.text({"topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"})},
                     {"whenUnsatisfiable", dice.text({"DoNotSchedule", "ScheduleAnyway"})},
                     {"labelSelector", selector(dice)}};
    if (one["whenUnsatisfiable"] == "DoNotSchedule" && dice.once_in(2)) one["minDomains"] = 1 + dice.below(4);
    if (dice.once_in(3)) one["nodeAffinityPolicy"] = dice.text({"Honor", "Ignore"});
    if (dice.once_in(3)) one["nodeTaintsPolicy"] = dice.text({"Honor", "Ignore"});
    if (dice.once_in(5)) one["matchLabelKeys"] = json::array{"tier"};
    if (!spec.contains("topologySpreadConstraints")) spec["topologySpreadConstraints"] = json::array{};
    spec["topologySpreadConstraints"].get_array().push_back(std::move(one));
  }
  spec["priority"] = 5 * dice.below(4) - 5;
  if (dice.once_in(10)) spec["preemptionPolicy"] = "Never";
  if (!node.empty()) spec["nodeName"] = node;
  json::object metadata{{"name", name},
                        {"namespace", dice.text({"default", "default", "other"})},
                        {"uid", "uid-" + name},
                        {"labels", std::move(labels)}};
  if (!node.empty() && dice.once_in(10)) metadata["deletionTimestamp"] = "2024-01-01T00:00:00Z";
  char started[] = "2024-01-01T00:00:00.000000Z";  // all different
  std::snprintf(started, sizeof started, "2024-01-01T00:00:%02d.%06dZ", dice.below(60),
                std::atoi(name.c_str() + name.find_first_of("0123456789")));
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)},
          {"status", {{"startTime", started}}}};
}

oracle::ClusterState cluster_state_of(Dice& dice) {
  oracle::ClusterState cluster_state;
  int nodes = 1 + dice.below(8), pods = dice.below(24);
  for (int i = 1; i <= nodes; i++) cluster_state.nodes.push_back(node_of(dice, i));
  for (int i = 0; i < pods; i++)
    cluster_state.pods.push_back(pod_of(dice, "p" + std::to_string(i), "n" + std::to_string(1 + dice.below(nodes))));
  cluster_state.namespaces = {{{"metadata", {{"name", "default"}, {"labels", {{"team", "a"}}}}}},
                              {{"metadata", {{"name", "other"}, {"labels", {{"team", "b"}}}}}}};
  if (dice.once_in(2)) {
    json::value service = {{"apiVersion", "v1"},
                           {"kind", "Service"},
                           {"metadata", {{"name", "s"}, {"namespace", "default"}}},
                           {"spec", {{"selector", {{"app", dice.text({"web", "db"})}}}}}};
    cluster_state.services.push_back(std::move(service));
  }
  while (dice.once_in(2)) {
    std::string name = "b" + std::to_string(cluster_state.budgets.size());
    json::value budget = {{"apiVersion", "policy/v1"},
                          {"kind", "PodDisruptionBudget"},
                          {"metadata", {{"name", name}, {"namespace", dice.text({"default", "other"})}}},
                          {"spec", {{"selector", selector(dice)}}},
                          {"status", {{"disruptionsAllowed", dice.below(3)}, {"disruptedPods", json::object{}}}}};
    if (dice.once_in(4)) make(budget, "status.disruptedPods") = {{"p" + std::to_string(dice.below(24)), "2024-01-01T00:00:00Z"}};
    cluster_state.budgets.push_back(std::move(budget));
  }
  return cluster_state;
}

// Adds the objects as informers would: some twice, some changed and changed back, so that cached sums are tested.
void furnish(SchedulerFixture& fixture, const oracle::ClusterState& from, Dice& dice) {
  for (const json::value& one : from.namespaces)
    fixture.cluster.put_namespace(std::string(get_string(one, "metadata.name")), get_object(one, "metadata.labels"));
  for (const json::value& one : from.services) fixture.lister.put(kService, one);
  for (const json::value& one : from.budgets) fixture.lister.put(kPodDisruptionBudget, one);
  for (const json::value& one : from.nodes) fixture.cluster.put_node(MUST(Object::make(kNode, one)));
  for (const json::value& one : from.pods) {
    ObjectPtr pod = MUST(Object::make(kPod, one));
    std::string node(get_string(one, "spec.nodeName"));
    if (dice.once_in(3)) fixture.place(pod, "n1");
    if (dice.once_in(5)) {
      fixture.place(pod, node);
      fixture.cluster.remove_pod(pod->uid());
    }
    fixture.place(pod, node);
  }
}

// Returns whether there are victims.
bool compare_preemption(const Decision& decision, const oracle::Sacrifice& want) {
  EXPECT_EQ(decision.post_filter.node, want.best) << decision.message;
  std::vector<std::string> victims;
  for (const PodInfoPtr& victim : decision.post_filter.victims) victims.push_back(victim->key.name);
  EXPECT_EQ(victims, want.best.empty() ? std::vector<std::string>() : want.victims.at(want.best)) << "on " << want.best;
  return !victims.empty();
}

TEST(Oracle, and_the_scheduler_agree_on_random_clusters) {
  const char* given = std::getenv("CORACLE_SEED");
  uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("seed %llu (CORACLE_SEED repeats it)\n", static_cast<unsigned long long>(seed));
  size_t fitting = 0, refusing = 0, choices = 0, preemptions = 0;
  for (int i = 0; i < kClusters && !testing::Test::HasFailure(); i++) {
    Dice dice(seed * uint64_t(kClusters) + uint64_t(i));
    oracle::ClusterState from = cluster_state_of(dice);
    SchedulerFixture fixture("percentageOfNodesToScore: 100\n");
    furnish(fixture, from, dice);
    for (int p = 0; p < 3; p++) {  // the same cluster; cached sums are kept
      json::value body = pod_of(dice, "new" + std::to_string(p), "");
      ObjectPtr pod = MUST(Object::make(kPod, body));
      oracle::Answer want = oracle::consult(from, body);
      SCOPED_TRACE("cluster " + std::to_string(i) + ", pod " + to_text(body));
      fixture.cluster.begin_decision();
      CycleState cycle(fixture.cluster.read(*pod), fixture.cluster, fixture.lister);
      Verdict refused = fixture.framework().pre_filter(cycle);
      std::vector<const NodeInfo*> feasible;
      std::set<std::string> names;
      for (const NodeInfo* node : fixture.cluster.nodes()) {
        if (refused.code != Answer::success || fixture.framework().filter(cycle, *node) != Answer::success) continue;
        feasible.push_back(node);
        names.insert(node->name);
      }
      ASSERT_EQ(names, want.feasible);
      fitting += names.size();
      refusing += from.nodes.size() - names.size();
      auto scores = feasible.empty() ? std::vector<Framework::PluginScore>() : fixture.framework().score(cycle, feasible);
      for (const auto& one : scores)
        for (size_t n = 0; n < feasible.size(); n++)
          ASSERT_EQ(one.normalized[n], want.scores.at(std::string(one.plugin->name())).at(feasible[n]->name))
              << one.plugin->name() << " of " << feasible[n]->name;
      Decision decision = fixture.decide(pod);
      ASSERT_EQ(decision.node.empty(), names.empty()) << decision.message;
      if (names.empty()) {
        preemptions += compare_preemption(decision, oracle::consult_preemption(from, body));
        continue;
      }
      int64_t best = INT64_MIN;
      for (const auto& [name, total] : want.totals) best = std::max(best, total);
      EXPECT_EQ(want.totals.at(decision.node), best);
      choices += names.size() > 1;
      // The pod is placed, so that the next ones see it.
      make(body, "spec.nodeName") = decision.node;
      from.pods.push_back(body);
      fixture.place(MUST(Object::make(kPod, body)), decision.node);
    }
  }
  std::printf("%zu nodes fit, %zu do not, %zu decisions between several, %zu at others' expense\n", fitting, refusing, choices,
              preemptions);
  EXPECT_GT(fitting, size_t(kClusters));
  EXPECT_GT(refusing, size_t(kClusters));
  EXPECT_GT(choices, size_t(kClusters / 4));
  EXPECT_GT(preemptions, size_t(kClusters / 20));
}

}  // namespace
}  // namespace coracle::scheduler
