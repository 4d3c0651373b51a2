// SPDX-License-Identifier: Apache-2.0
// Nodes: a pod is evicted for a NoExecute taint that it does not tolerate, or no longer tolerates, counted from the time when the
// daemon can first have seen both; never for one that it tolerates forever. At rest, no pod is bound to a deleted node or stays
// under such a taint; a node with an expired lease is Unknown, gets no pods, and none of its pods is ready; a node with a current
// lease is not Unknown. This machine's own node is not judged by its lease. Source: Kubernetes "Taints and Tolerations", "Node
// heartbeats", "Pod garbage collection".
#include <algorithm>
#include <map>

#include "tests/simulation/rules/jobs.h"
#include "tests/simulation/rules/resources.h"

namespace coracle::simulation {
namespace {

using std::chrono::seconds;

constexpr seconds kGrace{50};

// How long the pod may stay under the node's NoExecute taints, by the first matching toleration of each. Nothing: forever.
std::optional<seconds> may_stay(const Object& node, const Object& pod) {
  std::optional<seconds> least;
  for (const json::value& taint : get_array(node.json(), "spec.taints")) {
    if (get_string(taint, "effect") != "NoExecute") continue;
    std::optional<seconds> span = seconds(0);
    for (const json::value& toleration : get_array(pod.json(), "spec.tolerations")) {
      if (!tolerates(toleration, taint)) continue;
      span.reset();
      if (find(toleration, "tolerationSeconds")) span = seconds(std::max<int64_t>(0, get_int(toleration, "tolerationSeconds")));
      break;
    }
    if (span) least = std::min(least.value_or(*span), *span);
  }
  return least;
}

bool has_taint(const Object& node, std::string_view key, std::string_view effect) {
  const json::array& taints = get_array(node.json(), "spec.taints");
  return std::any_of(taints.begin(), taints.end(), [&](const json::value& taint) {
    return get_string(taint, "key") == key && get_string(taint, "effect") == effect;
  });
}

class NodesRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (std::exchange(daemons_, cluster_state.daemons()) != cluster_state.daemons())
      for (auto& [uid, since] : threatened_) since = cluster_state.clock.steady();  // a new daemon starts counting anew
    if (*change.kind == kNode && change.after)
      for (const ObjectPtr& pod : cluster_state.all(kPod)) note(cluster_state, *change.after, *pod);
    if (!(*change.kind == kPod) || !change.after) return;
    if (ObjectPtr node = cluster_state.find(kNode, {"", std::string(get_string(change.after->json(), "spec.nodeName"))}))
      note(cluster_state, *node, *change.after);
    bool given_up = given_up_for_taint(*change.after) && !(change.before && given_up_for_taint(*change.before));
    if (actor == Actor::daemon && given_up) check(cluster_state, *change.after);
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& pod : cluster_state.all(kPod)) {
      std::string name(get_string(pod->json(), "spec.nodeName"));
      if (name.empty()) continue;
      ObjectPtr node = cluster_state.find(kNode, {"", name});
      if (!node) return cluster_state.violated("nodes: " + describe(*pod) + " is on " + name + ", which is gone");
      if (may_stay(*node, *pod) && !(pod->deleting() && waits_for_another(cluster_state, *pod)))
        return cluster_state.violated("nodes: " + describe(*pod) + " is still on " + name + " and does not tolerate it");
      if (is_silent(cluster_state, *node) && ready(*pod))
        return cluster_state.violated("nodes: " + describe(*pod) + " is ready, and " + name + " is not heard");
    }
    for (const ObjectPtr& node : cluster_state.all(kNode)) {
      bool silent = is_silent(cluster_state, *node),
           unreachable = has_taint(*node, "node.kubernetes.io/unreachable", "NoSchedule");
      std::string_view told = condition(*node, "Ready", "status");
      if (told != (silent ? "Unknown" : "True"))
        return cluster_state.violated("nodes: " + node->name() + (silent ? " is silent" : " is heard") + ", and Ready is " +
                                      std::string(told));
      if (unreachable != silent)
        return cluster_state.violated("nodes: " + node->name() +
                                      (silent ? " is silent, and no taint says so" : " is heard, and said to be unreachable"));
    }
  }

 private:
  static bool given_up_for_taint(const Object& pod) {
    return condition(pod, "DisruptionTarget", "reason") == "DeletionByTaintManager";
  }

  static bool is_silent(const ClusterState& cluster_state, const Object& node) {
    if (node.name() == "node-0") return false;
    ObjectPtr lease = cluster_state.find(kLease, {"kube-node-lease", node.name()});
    auto renewed = lease ? parse_time(get_string(lease->json(), "spec.renewTime")) : Result<WallTime>(Error(Code::not_found, ""));
    return !renewed || *renewed + kGrace < cluster_state.clock.now();
  }

  void note(const ClusterState& cluster_state, const Object& node, const Object& pod) {
    if (get_string(pod.json(), "spec.nodeName") == node.name() && may_stay(node, pod))
      threatened_.emplace(pod.uid(), cluster_state.clock.steady());
  }

  void check(const ClusterState& cluster_state, const Object& pod) const {
    std::string node(get_string(pod.json(), "spec.nodeName")),
        name = "nodes: " + describe(pod) + " is given up on " + node + ": ";
    std::optional<seconds> least;
    for (const ObjectPtr& each : cluster_state.believable(kNode, {"", node}))
      if (auto span = may_stay(*each, pod)) least = std::min(least.value_or(*span), *span);
    if (!least) return cluster_state.violated(name + "no taint says so");
    auto since = threatened_.find(pod.uid());
    if (since == threatened_.end() || cluster_state.clock.steady() - since->second < *least)
      cluster_state.violated(name + "it tolerates its taints for " + std::to_string(least->count()) + " s");
  }

  std::map<std::string, SteadyTime> threatened_;  // by uid: when the daemon can first have known that the pod must go
  int daemons_ = 0;
};

}  // namespace

std::unique_ptr<Rule> nodes_rule() { return std::make_unique<NodesRule>(); }

}  // namespace coracle::simulation
