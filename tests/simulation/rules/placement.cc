// SPDX-License-Identifier: Apache-2.0
// The scheduler: a pod is bound once; to a node that accepts it by taints, cordon and free resources, in some state that the
// daemon may still assume. At rest, no pod is pending that fits on a node.
// Source: Kubernetes scheduling: NodeUnschedulable, TaintToleration, NodeResourcesFit.
#include <algorithm>

#include "tests/simulation/rules/resources.h"

namespace coracle::simulation {
namespace {

class PlacementRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (!(*change.kind == kPod) || !change.before || !change.after) return;
    std::string_view before = get_string(change.before->json(), "spec.nodeName"),
                     node = get_string(change.after->json(), "spec.nodeName");
    if (before == node) return;
    std::string name = "placement: " + change.after->key().text() + " on " + std::string(node);
    if (!before.empty()) return cluster_state.violated(name + " was bound before, to " + std::string(before));
    if (actor != Actor::daemon) return;
    std::vector<ObjectPtr> nodes = cluster_state.believable(kNode, {"", std::string(node)});
    if (nodes.empty()) return cluster_state.violated(name + ", which the daemon knows is gone");
    Resources used = used_on(cluster_state, node, change.after->uid());
    bool taken = std::any_of(nodes.begin(), nodes.end(), [&](const ObjectPtr& each) { return takes(*each, *change.after); });
    bool fits = std::any_of(nodes.begin(), nodes.end(),
                            [&](const ObjectPtr& each) { return offered(*each).holds(used, asked(*change.after)); });
    bool waited = !get_array(change.after->json(), "spec.volumes").empty();  // for volumes, after the choice
    if (!taken && !waited) return cluster_state.violated(name + ", which does not take it");
    if (!fits)
      cluster_state.violated(name + ", which has no space: " + std::to_string(used.cpu) + "m, " + std::to_string(used.pods) +
                             " pods");
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& pod : cluster_state.all(kPod)) {
      if (!active(*pod) || !get_string(pod->json(), "spec.nodeName").empty() ||
          !get_array(pod->json(), "spec.schedulingGates").empty() || find(pod->json(), "spec.affinity"))
        continue;
      for (const ObjectPtr& node : cluster_state.all(kNode)) {
        if (takes(*node, *pod) && has_volumes(cluster_state, *node, *pod) &&
            offered(*node).holds(used_on(cluster_state, node->name(), "") + asked(*pod), asked(*pod)))
          return cluster_state.violated("placement: " + pod->key().text() + " waits, and " + node->name() + " would take it");
      }
    }
  }

 private:
  // The resources used by pods that the daemon knows. `own` counts in any case.
  static Resources used_on(const ClusterState& cluster_state, std::string_view node, const std::string& own) {
    Resources used;
    for (const ObjectPtr& pod : cluster_state.all(kPod)) {
      if (get_string(pod->json(), "spec.nodeName") != node || finished(*pod)) continue;
      if (pod->uid() != own && cluster_state.daemon_unaware_of(*pod)) continue;
      used = used + asked(*pod);
    }
    return used;
  }
};

}  // namespace

std::unique_ptr<Rule> placement_rule() { return std::make_unique<PlacementRule>(); }

}  // namespace coracle::simulation
