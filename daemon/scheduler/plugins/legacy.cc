// SPDX-License-Identifier: Apache-2.0
// SelectorSpread and NodePreferAvoidPods: the predecessors of topology spread and taints, for configurations that still use them.
// Source: Kubernetes v1.22 "Scheduling Policies" (removed since).
#include <algorithm>

#include "daemon/placement/placement.h"
#include "daemon/scheduler/plugins/plugins.h"
#include "daemon/scheduler/plugins/pod_selectors.h"

namespace coracle::scheduler {
namespace {

// Spreads the pods of a service or controller over nodes, and with more weight over zones.
class SelectorSpread : public Plugin {
 public:
  std::string_view name() const override { return "SelectorSpread"; }
  uint32_t points() const override { return pre_score_point | score_point; }

  struct State : CycleState::State {
    const PodCounter* counter = nullptr;
  };
  Answer pre_score(CycleState& cycle, const std::vector<const NodeInfo*>&) const override {
    if (!cycle.info->spread.empty()) return Answer::skip;
    auto state = std::make_unique<State>();
    auto selector = default_selector(*cycle.object, cycle.lister);
    if (selector) {
      PodTerm pods = term_of(cycle.info->key.ns, std::move(*selector), "");
      state->counter = &cycle.cluster.counter({&pods}, true);
    }
    cycle.score_state[index] = std::move(state);
    return Answer::success;
  }
  void score(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    const PodCounter* counter = static_cast<const State&>(*cycle.score_state[index]).counter;
    score_each(scores, [&](const NodeInfo& node) { return counter ? counter->by_slot[node.slot] : 0; });
  }
  void normalize(const CycleState&, std::vector<NodeScore>& scores) const override {
    constexpr double kZones = 2.0 / 3.0;
    std::map<std::string, int64_t> zones;
    int64_t most = 0, most_of_zone = 0;
    for (const NodeScore& one : scores) {
      most = std::max(most, one.score);
      if (std::string zone = placement::zone_of(one.node->labels); !zone.empty()) zones[zone] += one.score;
    }
    for (const auto& [zone, count] : zones) most_of_zone = std::max(most_of_zone, count);
    for (NodeScore& one : scores) {
      double score = most > 0 ? 100.0 * (double(most - one.score) / double(most)) : 100.0;
      if (std::string zone = placement::zone_of(one.node->labels); !zone.empty()) {
        double of_zone = most_of_zone > 0 ? 100.0 * (double(most_of_zone - zones[zone]) / double(most_of_zone)) : 100.0;
        score = score * (1 - kZones) + kZones * of_zone;
      }
      one.score = int64_t(score);
    }
  }
};

// A node's annotation may name controllers whose pods should avoid it.
class NodePreferAvoidPods : public Plugin {
 public:
  std::string_view name() const override { return "NodePreferAvoidPods"; }
  uint32_t points() const override { return score_point; }

  void score(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    auto owner = cycle.object->controller();
    bool may_be_named = owner && (owner->kind == "ReplicationController" || owner->kind == "ReplicaSet");
    score_each(scores, [&](const NodeInfo& node) { return may_be_named && avoids(node, *owner) ? 0 : kNodeScoreMax; });
  }

 private:
  static bool avoids(const NodeInfo& node, const OwnerReference& owner) {
    ObjectPtr object = node.node->awake();
    auto avoid = parse_json(object->annotation("scheduler.alpha.kubernetes.io/preferAvoidPods"));
    if (!avoid) return false;
    for (const json::value& one : get_array(*avoid, "preferAvoidPods")) {
      const json::value* controller = find(one, "podSignature.podController");
      if (controller && get_string(*controller, "kind") == owner.kind && get_string(*controller, "uid") == owner.uid) return true;
    }
    return false;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_selector_spread() { return std::make_unique<SelectorSpread>(); }
std::unique_ptr<Plugin> make_node_prefer_avoid_pods() { return std::make_unique<NodePreferAvoidPods>(); }

}  // namespace coracle::scheduler
