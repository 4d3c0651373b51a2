// SPDX-License-Identifier: Apache-2.0
// The cost of the scheduler: 10,000 pods are placed on 1,000 nodes, and the same on fewer and more nodes. Measured is the work of
// the scheduler's thread under its lock for each pod: reading it, the queue, the decision, the assumption, and later the
// informer's event of the bound pod. Not measured is the API's write of the binding, which depends on the disk. Times are
// processor times, so that a busy machine does not spoil them. Prints "bench:" lines.
#include <time.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "daemon/scheduler/queue.h"
#include "tests/daemon/scheduler/scheduler_fixture.h"

using namespace coracle;
using namespace coracle::scheduler;

namespace {

constexpr int kPods = 10000, kDeployments = 50, kZones = 10;

json::value make_node(int number, bool mixed) {
  std::string name = "node-" + std::to_string(number);
  json::object spec;
  if (mixed && number % 11 == 0) spec["taints"] = json::array{{{"key", "dedicated"}, {"value", "db"}, {"effect", "NoSchedule"}}};
  if (mixed && number % 11 == 1) spec["taints"] = json::array{{{"key", "slow"}, {"effect", "PreferNoSchedule"}}};
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata",
           {{"name", name},
            {"labels",
             {{"kubernetes.io/hostname", name},
              {"topology.kubernetes.io/zone", "zone-" + std::to_string(number % kZones)},
              {"disk", number % 2 ? "ssd" : "hdd"}}}}},
          {"spec", std::move(spec)},
          {"status", {{"allocatable", {{"cpu", "32"}, {"memory", "128Gi"}, {"pods", "250"}, {"ephemeral-storage", "100Gi"}}}}}};
}

json::value make_pod(int number, bool mixed) {
  int deployment = number % kDeployments;
  std::string app = "app-" + std::to_string(deployment), name = app + "-" + std::to_string(number);
  json::value mine = {{"matchLabels", {{"app", app}}}};
  json::object spec{{"containers", json::array{{{"name", "c"},
                                                {"image", "registry.example/app:1"},
                                                {"resources", {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}}}}}}}};
  if (mixed) {
    json::object affinity;
    auto weighted = [&](const char* key) {
      return json::array{{{"weight", 50}, {"podAffinityTerm", {{"topologyKey", key}, {"labelSelector", mine}}}}};
    };
    if (deployment % 5 == 0)
      affinity["podAntiAffinity"] = {{"requiredDuringSchedulingIgnoredDuringExecution",
                                      json::array{{{"topologyKey", "kubernetes.io/hostname"}, {"labelSelector", mine}}}}};
    if (deployment % 5 == 1)
      affinity["podAntiAffinity"] = {{"preferredDuringSchedulingIgnoredDuringExecution", weighted("kubernetes.io/hostname")}};
    if (deployment % 5 == 2)
      affinity["podAffinity"] = {{"preferredDuringSchedulingIgnoredDuringExecution", weighted("topology.kubernetes.io/zone")}};
    if (deployment % 5 == 3)
      affinity["nodeAffinity"] = {
          {"requiredDuringSchedulingIgnoredDuringExecution",
           {{"nodeSelectorTerms",
             json::array{
                 {{"matchExpressions", json::array{{{"key", "disk"}, {"operator", "In"}, {"values", json::array{"ssd"}}}}}}}}}}};
    if (!affinity.empty()) spec["affinity"] = std::move(affinity);
    if (deployment % 5 >= 3)
      spec["topologySpreadConstraints"] = json::array{{{"maxSkew", 1},
                                                       {"topologyKey", "topology.kubernetes.io/zone"},
                                                       {"whenUnsatisfiable", deployment % 2 ? "DoNotSchedule" : "ScheduleAnyway"},
                                                       {"labelSelector", mine}}};
    if (deployment % 3 == 0) spec["tolerations"] = json::array{{{"key", "dedicated"}, {"operator", "Exists"}}};
  }
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", name},
            {"namespace", "default"},
            {"uid", "uid-" + name},
            {"labels", {{"app", app}}},
            {"creationTimestamp", "2024-01-01T00:00:00Z"}}},
          {"spec", std::move(spec)}};
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

// Pods placed per second of processor time.
double measure(int nodes, int pods, bool mixed) {
  SchedulerFixture fixture;
  for (int i = 0; i < nodes; i++) fixture.cluster.put_node(MUST(Object::make(kNode, make_node(i, mixed))));
  std::vector<ObjectPtr> waiting, bound;
  for (int i = 0; i < pods; i++) waiting.push_back(MUST(Object::make(kPod, make_pod(i, mixed))));
  SchedulingQueue queue([&](const PodInfo& a, const PodInfo& b) { return fixture.framework().sorts_before(a, b); },
                        std::chrono::seconds(1), std::chrono::seconds(10));
  double spent = 0;
  int placed = 0;
  auto timed = [&](auto&& work) {
    double begin = cpu_seconds();
    work();
    spent += cpu_seconds() - begin;
  };
  timed([&] {
    for (const ObjectPtr& pod : waiting) queue.add(fixture.cluster.read(*pod));
  });
  for (bool more = true; more;) {
    PodInfoPtr info;
    Decision decision;
    timed([&] {
      info = queue.pop({});
      if (!info) return;
      decision =
          scheduler::decide(fixture.framework(), info, fixture.cluster, fixture.lister, fixture.nominations, fixture.start);
      if (decision.node.empty()) return queue.park(info->key, decision.refused, {});
      fixture.cluster.place(info, decision.node);
    });
    more = info != nullptr;
    if (!more || decision.node.empty()) continue;
    ++placed;
    json::value body = info->object->awake()->json();
    make(body, "spec.nodeName") = decision.node;
    ObjectPtr after = MUST(Object::make(kPod, body));
    timed([&] {  // as the informer would deliver it
      queue.remove(info->key);
      PodInfoPtr now = fixture.cluster.read(*after);
      if (now->group != info->group || fixture.cluster.node_of(now->uid) != decision.node)
        fixture.cluster.place(now, decision.node);
    });
  }
  std::printf("bench: scheduler, %s, %d of %d pods onto %d nodes: %.0f pods/s, %.1f us each\n",
              mixed ? "affinity, spreading and taints" : "resources only", placed, pods, nodes, pods / spent, spent / pods * 1e6);
  return pods / spent;
}

}  // namespace

int main() {
  double plain = measure(1000, kPods, false), mixed = measure(1000, kPods, true);
  double one = measure(1, 200, true);
  double few = measure(250, kPods / 4, true), many = measure(4000, kPods, true);
  std::printf("bench: scheduler, cost of a pod with 16 times the nodes: %.1f times as much\n", few / many);
  std::printf("bench: scheduler, bars: 20000 pods/s plain %s, 5000 pods/s mixed %s, one node %.0f pods/s\n",
              plain >= 20000 ? "met" : "MISSED", mixed >= 5000 ? "met" : "MISSED", one);
  return 0;
}
