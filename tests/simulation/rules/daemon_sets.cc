// SPDX-License-Identifier: Apache-2.0
// DaemonSets: a pod is created for an eligible node without a pod of the set; a second one beside the old one only within
// maxSurge. An update does not delete a working pod when as many as maxUnavailable nodes lack one, nor, with a surge, before the
// new one works. All for some state that the daemon may still assume. Source: Kubernetes DaemonSet; KEP-1591.
#include <algorithm>
#include <set>

#include "tests/simulation/rules/resources.h"
#include "tests/simulation/rules/revisions.h"

namespace coracle::simulation {
namespace {

// The node that the pod is bound to or created for.
std::string target_node(const Object& pod) {
  std::string bound(get_string(pod.json(), "spec.nodeName"));
  if (!bound.empty()) return bound;
  for (const json::value& term :
       get_array(pod.json(), "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"))
    for (const json::value& field : get_array(term, "matchFields"))
      if (get_string(field, "key") == "metadata.name") return std::string(get_array(field, "values").at(0).as_string());
  return "";
}

bool daemon_tolerates(const json::array& tolerations, const json::value& taint) {
  std::string_view key = get_string(taint, "key"), effect = get_string(taint, "effect");
  static const std::set<std::pair<std::string_view, std::string_view>> always{
      {"node.kubernetes.io/not-ready", "NoExecute"},      {"node.kubernetes.io/unreachable", "NoExecute"},
      {"node.kubernetes.io/disk-pressure", "NoSchedule"}, {"node.kubernetes.io/memory-pressure", "NoSchedule"},
      {"node.kubernetes.io/pid-pressure", "NoSchedule"},  {"node.kubernetes.io/unschedulable", "NoSchedule"}};
  if (always.contains({key, effect})) return true;
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const json::value& each) { return tolerates(each, taint); });
}

struct Fit {
  bool runs = false, stays = false;
};
Fit fit(const json::value& spec, const Object& node) {  // spec: of a pod or a template
  for (const auto& [key, value] : get_object(spec, "nodeSelector"))
    if (node.label(key) != value.as_string()) return {};
  Fit fit{true, true};
  for (const json::value& taint : get_array(node.json(), "spec.taints")) {
    std::string_view effect = get_string(taint, "effect");
    if (effect == "PreferNoSchedule" || daemon_tolerates(get_array(spec, "tolerations"), taint)) continue;
    fit.runs = false;
    fit.stays &= effect != "NoExecute";
  }
  return fit;
}
const json::value& pod_spec(const Object& set) { return *find(set.json(), "spec.template.spec"); }

int64_t amount(const Object& set, const char* name, int64_t nodes, int64_t otherwise) {
  const json::value* value = find(set.json(), std::string("spec.updateStrategy.rollingUpdate.") + name);
  return value ? scaled_value(*value, nodes, true) : otherwise;
}
int64_t surge(const Object& set, int64_t nodes) { return amount(set, "maxSurge", nodes, 0); }

class DaemonSetsRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (actor != Actor::daemon || !(*change.kind == kPod)) return;
    auto owner = change.any().controller();
    if (!owner || owner->kind != kDaemonSet.kind) return;
    std::vector<ObjectPtr> sets = cluster_state.believable_owner(kDaemonSet, change.any());
    if (!change.before) check_creation(cluster_state, sets, *change.after);
    if (change.removes()) check_removal(cluster_state, sets, *change.before);
    removals_.note(actor, change, cluster_state);
  }

  void at_rest(const ClusterState& cluster_state) override {
    surging_.clear();
    for (const ObjectPtr& set : cluster_state.all(kDaemonSet)) check_rest(cluster_state, *set);
  }

 private:
  // The largest and the smallest number of eligible nodes that the daemon may assume, over all states of each node.
  static int64_t most_nodes(const ClusterState& cluster_state, const Object& set) {
    int64_t count = 0;
    for (const ObjectPtr& node : cluster_state.all(kNode)) {
      std::vector<ObjectPtr> versions = cluster_state.believable(kNode, node->key());
      count +=
          std::any_of(versions.begin(), versions.end(), [&](const ObjectPtr& each) { return fit(pod_spec(set), *each).runs; });
    }
    return count;
  }

  void check_creation(const ClusterState& cluster_state, const std::vector<ObjectPtr>& sets, const Object& pod) {
    std::string node = target_node(pod), name = "daemonsets: made " + pod.key().text() + " for " + node;
    if (sets.empty()) return cluster_state.violated(name + ", of a set that the daemon knows is gone");
    std::vector<ObjectPtr> nodes = cluster_state.believable(kNode, {"", node});
    bool taken = std::any_of(nodes.begin(), nodes.end(),
                             [&](const ObjectPtr& each) { return fit(*find(pod.json(), "spec"), *each).runs; });
    if (!taken) return cluster_state.violated(name + ", which does not take it");
    std::vector<ObjectPtr> others = cluster_state.controlled(kPod, *sets.front());
    std::erase_if(others, [&](const ObjectPtr& other) {
      bool ended = perhaps(cluster_state, *other, [](const Object& each) { return finished(each); });
      return other->uid() == pod.uid() || target_node(*other) != node || ended || cluster_state.daemon_unaware_of(*other);
    });
    bool may_surge = std::any_of(sets.begin(), sets.end(), [&](const ObjectPtr& set) { return surge(*set, 1) > 0; });
    if (!others.empty() && !may_surge) return cluster_state.violated(name + ", where " + others.front()->name() + " is");
    std::erase_if(others, [](const ObjectPtr& other) { return !active(*other); });
    if (others.size() > 1) return cluster_state.violated(name + ", where there are two");
    if (others.empty()) return;
    bool same = std::all_of(sets.begin(), sets.end(),
                            [&](const ObjectPtr& set) { return of_template(cluster_state, *set, *others.front()); });
    if (same) return cluster_state.violated(name + ", where " + others.front()->name() + " is, of the same template");
    check_surge(cluster_state, sets, pod, *others.front());
  }

  // A pod beside a working one counts as surge until it works or one of the two is gone.
  void check_surge(const ClusterState& cluster_state, const std::vector<ObjectPtr>& sets, const Object& pod, const Object& old) {
    const Object& set = *sets.front();
    if (!surely(cluster_state, old, [&](const Object& each) { return available(cluster_state, each, set); })) return;
    surging_[pod.key()] = {set.uid(), pod.uid(), old.key(), old.uid()};
    std::erase_if(surging_, [&](const auto& entry) {
      ObjectPtr updated = cluster_state.find(kPod, entry.first), replaced = cluster_state.find(kPod, entry.second.old);
      auto is_held = [&](const ObjectPtr& pod) {
        auto owner = pod ? pod->controller() : std::nullopt;
        return owner && owner->uid == entry.second.set;
      };
      if (!is_held(updated) || !is_held(replaced)) return true;  // one is gone or was released: the other one is its node's pod
      return updated->uid() != entry.second.uid || replaced->uid() != entry.second.old_uid || !active(*updated) ||
             !active(*replaced);
    });
    int64_t there = 0, most = 0;
    for (const auto& [key, pair] : surging_) {
      if (pair.set != set.uid()) continue;
      ObjectPtr updated = cluster_state.find(kPod, key);
      bool works = perhaps(cluster_state, *updated, [&](const Object& each) { return available(cluster_state, each, set); });
      bool replaced_fails =
          perhaps(cluster_state, *cluster_state.find(kPod, pair.old), [&](const Object& each) { return !ready(each); });
      there += !works && !replaced_fails && !cluster_state.daemon_unaware_of(*updated);
    }
    for (const ObjectPtr& each : sets) most = std::max(most, surge(*each, most_nodes(cluster_state, *each)));
    if (there > most)
      cluster_state.violated("daemonsets: made " + pod.key().text() + ", the " + std::to_string(there) +
                             ". beside an old one, of " + std::to_string(most));
  }

  void check_removal(const ClusterState& cluster_state, const std::vector<ObjectPtr>& sets, const Object& pod) const {
    bool no_choice = sets.empty() ||
                     std::any_of(sets.begin(), sets.end(), [](const ObjectPtr& set) { return set->deleting(); }) ||
                     disrupted(cluster_state, pod);
    ObjectPtr ns = cluster_state.find(kNamespace, {"", pod.ns()});
    if (no_choice || !ns || ns->deleting()) return;
    std::string why;
    for (const ObjectPtr& set : sets) {
      why = against(cluster_state, *set, pod);
      if (why.empty()) return;
    }
    cluster_state.violated("daemonsets: removed " + pod.key().text() + ", " + why);
  }

  // Why this set would not have done it.
  std::string against(const ClusterState& cluster_state, const Object& set, const Object& pod) const {
    std::string node = target_node(pod);
    if (!surely(cluster_state, pod, [&](const Object& each) { return available(cluster_state, each, set); })) {
      bool old =
          perhaps(cluster_state, pod, [](const Object& each) { return finished(each); }) || !of_template(cluster_state, set, pod);
      if (old) return "";
    }
    std::vector<ObjectPtr> nodes = cluster_state.certain(kNode, {"", node});
    bool surges = surge(set, 1) > 0;  // a kept pod that would not be created here is replaced too, but a surge may skip it
    bool fits = !nodes.empty() && std::all_of(nodes.begin(), nodes.end(), [&](const ObjectPtr& each) {
      Fit fit = simulation::fit(pod_spec(set), *each);
      return surges ? fit.runs : fit.stays;
    });
    if (!fits) return "";  // it is misplaced
    int64_t beside = 0;
    bool replaced = false;
    for (const auto& [uid, other] : perhaps_controlled(cluster_state, set)) {
      if (uid == pod.uid() || target_node(*other) != node) continue;
      bool counts =
          !surges || of_template(cluster_state, set, *other) == of_template(cluster_state, set, pod);  // one of each may exist
      beside += counts && !removals_.known(cluster_state, *other) &&
                perhaps(cluster_state, *other, [](const Object& each) { return active(each); });
      replaced |= perhaps(cluster_state, *other, [&](const Object& each) { return available(cluster_state, each, set); });
    }
    if (beside > 0) return "";  // there are too many
    if (!rolls(set)) return "which is updated when somebody else removes it";
    if (surges)
      return replaced || !surely(cluster_state, pod, [](const Object& each) { return ready(each); })
                 ? ""
                 : "before there is another that works";
    if (of_template(cluster_state, set, pod)) return "which is of the set's template";
    int64_t without = 1, most = std::max<int64_t>(1, amount(set, "maxUnavailable", most_nodes(cluster_state, set), 1));
    for (const ObjectPtr& each : cluster_state.all(kNode)) {
      std::vector<ObjectPtr> versions = cluster_state.certain(kNode, each->key());
      bool counts = !versions.empty() && std::all_of(versions.begin(), versions.end(),
                                                     [&](const ObjectPtr& version) { return fit(pod_spec(set), *version).runs; });
      without += counts && each->name() != node && !perhaps_served(cluster_state, set, each->name());
    }
    if (without > most) return "and " + std::to_string(without) + " nodes are without one that works, of " + std::to_string(most);
    return "";
  }

  // Its pods by uid, including deleted ones that the daemon may still assume.
  static std::map<std::string, ObjectPtr> perhaps_controlled(const ClusterState& cluster_state, const Object& set) {
    std::map<std::string, ObjectPtr> out;
    for (ObjectPtr& pod : cluster_state.believable_in(kPod, set.ns()))
      if (auto owner = pod->controller(); owner && owner->uid == set.uid()) out.emplace(pod->uid(), std::move(pod));
    return out;
  }

  bool perhaps_served(const ClusterState& cluster_state, const Object& set, const std::string& node) const {
    for (const auto& [uid, pod] : perhaps_controlled(cluster_state, set))
      if (target_node(*pod) == node && !removals_.known(cluster_state, *pod) &&
          perhaps(cluster_state, *pod, [&](const Object& each) { return available(cluster_state, each, set); }))
        return true;
    return false;
  }

  static void check_rest(const ClusterState& cluster_state, const Object& set) {
    std::string name = "daemonsets: " + describe(set) + ": ";
    bool hindered = !cluster_state.all(kResourceQuota, set.ns()).empty(), all_well = true, due = true;
    int64_t wanted = 0, there = 0, good = 0, updated = 0, misplaced = 0;
    std::vector<ObjectPtr> pods = cluster_state.controlled(kPod, set);
    for (const ObjectPtr& node : cluster_state.all(kNode)) {
      Fit fit = simulation::fit(pod_spec(set), *node);
      std::vector<ObjectPtr> here;
      std::copy_if(pods.begin(), pods.end(), std::back_inserter(here),
                   [&](const ObjectPtr& pod) { return target_node(*pod) == node->name(); });
      wanted += fit.runs;
      if (here.size() > 1 && !(here.size() == 2 && surge(set, 1) > 0))
        return cluster_state.violated(name + std::to_string(here.size()) + " pods on " + node->name());
      if (here.empty()) {
        if (fit.runs && !hindered) return cluster_state.violated(name + "no pod on " + node->name());
        all_well &= !fit.runs;
        continue;
      }
      if (!fit.stays) return cluster_state.violated(name + here.front()->name() + " is still on " + node->name());
      if (!fit.runs) {
        misplaced++;
        continue;
      }
      there++;
      bool works = std::all_of(here.begin(), here.end(), [](const ObjectPtr& pod) { return ready(*pod); });
      all_well &= works && here.size() == 1;
      if (here.size() > 1) continue;
      good += ready(*here.front()), updated += of_template(cluster_state, set, *here.front());
      due &= of_template(cluster_state, set, *here.front());
    }
    if (rolls(set) && all_well && !due && !hindered) return cluster_state.violated(name + "a pod is of an old template");
    struct Count {
      const char* name;
      int64_t value;
    };
    std::vector<Count> counts{{"desiredNumberScheduled", wanted},
                              {"currentNumberScheduled", there},
                              {"numberMisscheduled", misplaced},
                              {"observedGeneration", get_int(set.json(), "metadata.generation")}};
    if (all_well)
      counts.insert(
          counts.end(),
          {{"numberReady", good}, {"numberAvailable", good}, {"numberUnavailable", 0}, {"updatedNumberScheduled", updated}});
    for (const Count& count : counts) {
      int64_t told = get_int(set.json(), std::string("status.") + count.name);
      if (told != count.value)
        return cluster_state.violated(name + "status." + count.name + " is " + std::to_string(told) + ", not " +
                                      std::to_string(count.value));
    }
    if (int64_t kept = revisions_kept(cluster_state, set), limit = get_int(set.json(), "spec.revisionHistoryLimit", 10);
        kept > limit)
      cluster_state.violated(name + "keeps " + std::to_string(kept) + " revisions of " + std::to_string(limit));
  }

  struct Pair {
    std::string set, uid;
    Key old;
    std::string old_uid;
  };
  std::map<Key, Pair> surging_;  // by the new pod
  Removals removals_;
};

}  // namespace

std::unique_ptr<Rule> daemon_sets_rule() { return std::make_unique<DaemonSetsRule>(); }

}  // namespace coracle::simulation
