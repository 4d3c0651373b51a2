// SPDX-License-Identifier: Apache-2.0
// Preemption: a victim is deleted for a more important pending pod that may preempt, does not fit beside it, would fit without
// all less important pods, and fits nowhere else; in some state that the daemon may still assume. Space nominated for a pod is
// not given to a less important one. At rest, no pod is pending that could preempt, and all victims are gone. The scheduler's own
// tests cover the choice of victims. Source: Kubernetes "Pod Priority and Preemption".
#include <algorithm>

#include "tests/simulation/rules/resources.h"

namespace coracle::simulation {
namespace {

int64_t priority(const Object& pod) { return get_int(pod.json(), "spec.priority"); }
std::string_view node_of(const Object& pod) { return get_string(pod.json(), "spec.nodeName"); }

bool waits(const Object& pod) {
  return active(pod) && node_of(pod).empty() && get_array(pod.json(), "spec.schedulingGates").empty();
}
bool may_preempt(const Object& pod) { return get_string(pod.json(), "spec.preemptionPolicy") != "Never"; }
bool chooses_nodes(const Object& pod) { return find(pod.json(), "spec.affinity") || find(pod.json(), "spec.nodeSelector"); }

bool is_told_to_go(const Object& pod) {
  for (const json::value& one : get_array(pod.json(), "status.conditions"))
    if (get_string(one, "type") == "DisruptionTarget")
      return get_string(one, "status") == "True" && get_string(one, "reason") == "PreemptionByScheduler";
  return false;
}

class PreemptionRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (actor != Actor::daemon || !(*change.kind == kPod) || !change.before || !change.after) return;
    if (is_told_to_go(*change.after) && !is_told_to_go(*change.before)) check_victim(cluster_state, *change.before);
    if (node_of(*change.before).empty() && !node_of(*change.after).empty()) check_nomination(cluster_state, *change.after);
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& pod : cluster_state.all(kPod)) {
      if (is_told_to_go(*pod) && !finished(*pod))
        return cluster_state.violated("preemption: " + describe(*pod) + " was told to go, and stays");
      if (!waits(*pod) || !may_preempt(*pod) || chooses_nodes(*pod)) continue;
      for (const ObjectPtr& node : cluster_state.all(kNode)) {
        Resources used = asked(*pod);
        bool lesser = false;
        for (const ObjectPtr& other : cluster_state.all(kPod)) {
          if (node_of(*other) != node->name() || finished(*other)) continue;
          if (priority(*other) < priority(*pod)) lesser = true;
          else used = used + asked(*other);
        }
        if (lesser && takes(*node, *pod) && has_volumes(cluster_state, *node, *pod) && offered(*node).holds(used, asked(*pod)))
          return cluster_state.violated("preemption: " + describe(*pod) + " waits, and would fit on " + node->name() +
                                        " without those less important");
      }
    }
  }

 private:
  static void check_victim(const ClusterState& cluster_state, const Object& victim) {
    std::string node(node_of(victim)), name = "preemption: " + describe(victim) + " of " + node + " is told to go";
    if (node.empty()) return cluster_state.violated(name + ", and is nowhere");
    if (cluster_state.believable(kPod, victim.key()).back()->uid() != victim.uid())
      return cluster_state.violated(name + ", and the daemon only knows another of its name");
    std::string why = "for nobody more important";
    for (const ObjectPtr& pod : cluster_state.believable_in(kPod, "")) {
      if (!waits(*pod) || !may_preempt(*pod) || priority(*pod) <= priority(victim)) continue;
      why = against(cluster_state, *pod, node);
      if (why.empty()) return;
    }
    cluster_state.violated(name + ", " + why);
  }

  // Why this pod may not preempt on that node.
  static std::string against(const ClusterState& cluster_state, const Object& pod, const std::string& node) {
    Resources most = asked(pod) + most_used(cluster_state, node, pod), least = asked(pod) + least_used(cluster_state, node, pod);
    std::vector<ObjectPtr> versions = cluster_state.believable(kNode, {"", node});
    bool fits = std::ranges::all_of(versions, [&](const ObjectPtr& each) { return offered(*each).holds(most, asked(pod)); });
    if (!versions.empty() && fits) return describe(pod) + " fits beside it";
    bool helps = std::ranges::any_of(
        versions, [&](const ObjectPtr& each) { return takes(*each, pod) && offered(*each).holds(least, asked(pod)); });
    if (!helps) return describe(pod) + " does not fit without it either";
    if (chooses_nodes(pod)) return "";
    for (const ObjectPtr& other : cluster_state.all(kNode)) {
      std::vector<ObjectPtr> certain = cluster_state.certain(kNode, other->key());
      Resources there = asked(pod) + most_used(cluster_state, other->name(), pod);
      bool free = std::ranges::all_of(certain, [&](const ObjectPtr& each) {
        return takes(*each, pod) && has_volumes(cluster_state, *each, pod) && offered(*each).holds(there, asked(pod));
      });
      if (!certain.empty() && free) return describe(pod) + " fits on " + other->name();
    }
    return "";
  }

  // Used by all pods that the daemon may assume to be there, and by equally important ones for which it may reserve space.
  static Resources most_used(const ClusterState& cluster_state, std::string_view node, const Object& but) {
    std::map<std::string, Resources> used;
    for (const ObjectPtr& pod : cluster_state.believable_in(kPod, "")) {
      bool there = node_of(*pod) == node && !finished(*pod), may_come = waits(*pod) && priority(*pod) >= priority(but);
      if (pod->uid() != but.uid() && (there || may_come)) used[pod->uid()] = asked(*pod);
    }
    Resources sum;
    for (const auto& [uid, resources] : used) sum = sum + resources;
    return sum;
  }

  // Used by the pods of at least this importance that are certainly there.
  static Resources least_used(const ClusterState& cluster_state, std::string_view node, const Object& by) {
    Resources sum;
    for (const ObjectPtr& pod : cluster_state.all(kPod)) {
      if (priority(*pod) < priority(by)) continue;
      std::vector<ObjectPtr> certain = cluster_state.certain(kPod, pod->key());
      bool there =
          std::ranges::all_of(certain, [&](const ObjectPtr& each) { return node_of(*each) == node && !finished(*each); });
      if (!certain.empty() && there) sum = sum + asked(*pod);
    }
    return sum;
  }

  static void check_nomination(const ClusterState& cluster_state, const Object& pod) {
    std::string node(node_of(pod));
    Resources used = asked(pod);
    std::string kept_for;
    for (const ObjectPtr& other : cluster_state.all(kPod)) {
      if (other->uid() == pod.uid()) continue;
      std::vector<ObjectPtr> certain = cluster_state.certain(kPod, other->key());
      if (certain.empty()) continue;
      if (std::ranges::all_of(certain, [&](const ObjectPtr& each) { return node_of(*each) == node && !finished(*each); }))
        used = used + asked(*other);
      bool kept = priority(*other) >= priority(pod) &&
                  !cluster_state.daemon_could_not_tell(*other) &&  // its nomination may have been cleared
                  std::ranges::all_of(certain, [&](const ObjectPtr& each) {
                    return waits(*each) && get_string(each->json(), "status.nominatedNodeName") == node;
                  });
      if (kept) used = used + asked(*other), kept_for += " " + other->key().text();
    }
    std::vector<ObjectPtr> versions = cluster_state.believable(kNode, {"", node});
    bool fits = std::ranges::any_of(versions, [&](const ObjectPtr& each) { return offered(*each).holds(used, asked(pod)); });
    if (!kept_for.empty() && !fits)
      cluster_state.violated("preemption: " + describe(pod) + " takes the space on " + node + " that is kept for" + kept_for);
  }
};

}  // namespace

std::unique_ptr<Rule> preemption_rule() { return std::make_unique<PreemptionRule>(); }

}  // namespace coracle::simulation
