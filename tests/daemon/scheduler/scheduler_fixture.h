// SPDX-License-Identifier: Apache-2.0
// A fixture of scheduling tests: a cluster, a Lister's objects, and the default profile, without clients or threads.
#pragma once

#include <map>
#include <string>

#include "daemon/quota/disruption.h"
#include "daemon/scheduler/configuration.h"
#include "daemon/scheduler/decide.h"
#include "store/object/selector_cache.h"

namespace coracle::scheduler {

struct TestLister : Lister {
  std::map<std::pair<std::string, Key>, ObjectPtr> objects;  // by resource
  void put(const Kind& kind, json::value body) {
    ObjectPtr object = MUST(Object::make(kind, body));
    objects[{std::string(kind.resource), object->key()}] = object;
  }
  ObjectPtr get(const Kind& kind, const Key& key) const {
    auto found = objects.find({std::string(kind.resource), key});
    return found == objects.end() ? nullptr : found->second;
  }
  std::vector<ObjectPtr> all(const Kind& kind, const std::string& ns) const {
    std::vector<ObjectPtr> out;
    for (const auto& [name, object] : objects)
      if (name.first == kind.resource && (ns.empty() || name.second.ns == ns)) out.push_back(object);
    return out;
  }
  ObjectPtr claim(const Key& key) const override { return get(kPersistentVolumeClaim, key); }
  ObjectPtr volume(const std::string& name) const override { return get(kPersistentVolume, {"", name}); }
  ObjectPtr storage_class(const std::string& name) const override { return get(kStorageClass, {"", name}); }
  ObjectPtr csi_driver(const std::string& name) const override { return get(kCSIDriver, {"", name}); }
  ObjectPtr csi_node(const std::string& name) const override { return get(kCSINode, {"", name}); }
  std::vector<ObjectPtr> storage_capacities() const override { return all(kCSIStorageCapacity, ""); }
  std::vector<ObjectPtr> volumes() const override { return all(kPersistentVolume, ""); }
  std::vector<ObjectPtr> services_of(const Object& pod) const override {
    std::vector<ObjectPtr> out = all(kService, pod.ns());
    std::erase_if(out, [&](const ObjectPtr& service) {
      auto selector = selector_of_service(*service);
      return !selector || !selector->matches(pod);
    });
    return out;
  }
  std::vector<ObjectPtr> budgets(const std::string& ns) const override { return all(kPodDisruptionBudget, ns); }
  ObjectPtr controller(const Kind& kind, const Key& key) const override { return get(kind, key); }
};

struct SchedulerFixture {
  Cluster cluster;
  TestLister lister;
  Configuration configuration = default_configuration();
  Nominations nominations;
  size_t start = 0;

  explicit SchedulerFixture(const std::string& yaml = "") {
    if (!yaml.empty())
      configuration =
          MUST(read_configuration("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + yaml));
  }
  const Framework& framework() const { return *configuration.profiles.front(); }
  Decision decide(const ObjectPtr& pod) {
    return scheduler::decide(framework(), cluster.read(*pod), cluster, lister, nominations, start);
  }
  void place(const ObjectPtr& pod, const std::string& node) { cluster.place(cluster.read(*pod), node); }

  // The reasons of PreFilter or of the first plugin that rejects the node; "" if the node fits.
  std::string reason(const ObjectPtr& pod, const std::string& node = "n1") {
    cluster.begin_decision();
    CycleState cycle(cluster.read(*pod), cluster, lister);
    Verdict verdict = framework().pre_filter(cycle);
    if (verdict.code == Answer::success) verdict = framework().why_not(cycle, *cluster.node(node));
    std::string out;
    for (const Reason& one : verdict.reasons) out += (out.empty() ? "" : "; ") + one.text;
    return out;
  }
  struct Score {
    int64_t raw = 0, normalized = 0;
    bool operator==(const Score&) const = default;
  };
  // The plugin's score of each node; all nodes count as feasible.
  std::map<std::string, Score> scores(const ObjectPtr& pod, const std::string& plugin) {
    cluster.begin_decision();
    CycleState cycle(cluster.read(*pod), cluster, lister);
    (void)framework().pre_filter(cycle);
    const auto nodes = cluster.nodes();
    std::map<std::string, Score> out;
    for (const auto& one : framework().score(cycle, nodes))
      if (one.plugin->name() == plugin)
        for (size_t i = 0; i < nodes.size(); i++) out[nodes[i]->name] = {one.raw[i], one.normalized[i]};
    return out;
  }
};

inline ObjectPtr node(const std::string& name, const std::string& spec = "{}", const std::string& labels = "{}",
                      const std::string& allocatable = R"({"cpu":"4","memory":"4Gi","pods":"10"})",
                      const std::string& images = "[]") {
  return MUST(Object::make(
      kNode,
      MUST(parse_json(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + name + R"(","labels":)" + labels +
                      R"(},"spec":)" + spec + R"(,"status":{"allocatable":)" + allocatable + R"(,"images":)" + images + "}}"))));
}

inline ObjectPtr pod(const std::string& name, const std::string& spec, const std::string& labels = "{}",
                     const std::string& ns = "default", const std::string& metadata = "", const std::string& status = "{}") {
  return MUST(Object::make(kPod, MUST(parse_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                                                 R"(","namespace":")" + ns + R"(","uid":"uid-)" + ns + name + R"(","labels":)" +
                                                 labels + metadata + R"(},"spec":)" + spec + R"(,"status":)" + status + "}"))));
}

inline std::string asks(const std::string& cpu, const std::string& memory, const std::string& more = "") {
  return R"({"containers":[{"name":"c","resources":{"requests":{"cpu":")" + cpu + R"(","memory":")" + memory + R"("}}}])" + more +
         "}";
}

}  // namespace coracle::scheduler
