// SPDX-License-Identifier: Apache-2.0
// StatefulSets. In order: a pod is created when all lower ordinals are available, and deleted when all higher ones are gone. An
// update replaces the highest ordinals first, none below the partition, and no working pod when as many as maxUnavailable do not
// work. A claim only gets an owner, with which it is deleted, according to the set's retention policy. All for some state that
// the daemon may still assume. Source: Kubernetes StatefulSet, "Deployment and Scaling Guarantees", "Update strategies"; KEP-961;
// KEP-1847.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "tests/simulation/rules/revisions.h"

namespace coracle::simulation {
namespace {

std::optional<int64_t> ordinal(const Object& set, std::string_view name) {
  std::string prefix = set.name() + "-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int64_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

struct Range {
  int64_t first, end;
  bool holds(int64_t ordinal) const { return ordinal >= first && ordinal < end; }
};
Range range(const Object& set) {
  int64_t first = get_int(set.json(), "spec.ordinals.start");
  return {first, first + get_int(set.json(), "spec.replicas", 1)};
}
bool ordered(const Object& set) { return get_string(set.json(), "spec.podManagementPolicy") != "Parallel"; }
int64_t partition(const Object& set) { return get_int(set.json(), "spec.updateStrategy.rollingUpdate.partition"); }
const json::value* limit_of(const Object& set) { return find(set.json(), "spec.updateStrategy.rollingUpdate.maxUnavailable"); }
bool limited(const Object& set) { return limit_of(set) != nullptr; }
int64_t most_unavailable(const Object& set) {
  const json::value* told = limit_of(set);
  return told ? std::max<int64_t>(1, scaled_value(*told, get_int(set.json(), "spec.replicas", 1), false)) : 1;
}
bool keeps(const Object& set, const char* when) {
  return get_string(set.json(), std::string("spec.persistentVolumeClaimRetentionPolicy.") + when) != "Delete";
}

class StatefulSetsRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (actor != Actor::daemon) return;
    if (*change.kind == kPersistentVolumeClaim && change.after) check_claim(cluster_state, change.before.get(), *change.after);
    if (!(*change.kind == kPod)) return;
    auto owner = change.any().controller();
    if (!owner || owner->kind != kStatefulSet.kind) return;
    std::vector<ObjectPtr> sets = cluster_state.believable_owner(kStatefulSet, change.any());
    if (!change.before) check_creation(cluster_state, sets, *change.after);
    if (change.removes()) check_removal(cluster_state, sets, *change.before);
    removals_.note(actor, change, cluster_state);
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& set : cluster_state.all(kStatefulSet))
      if (!set->deleting()) check_rest(cluster_state, *set);
  }

 private:
  void check_creation(const ClusterState& cluster_state, const std::vector<ObjectPtr>& sets, const Object& pod) const {
    std::string name = "statefulsets: made " + pod.key().text();
    if (sets.empty()) return cluster_state.violated(name + " for a set that the daemon knows is gone");
    bool wanted = false, in_order = false;
    for (const ObjectPtr& set : sets) {
      auto number = ordinal(*set, pod.name());
      if (!number) return cluster_state.violated(name + ", which is not a name of its set");
      bool here = range(*set).holds(*number);
      wanted |= here;
      in_order |= here && (!ordered(*set) || all_available(cluster_state, *set, *number));
    }
    if (!wanted) return cluster_state.violated(name + ", which is out of the range of its set");
    if (!in_order) cluster_state.violated(name + " before those in front of it are available");
  }

  // The pods below ordinal `end`, as far as the daemon may know.
  bool all_available(const ClusterState& cluster_state, const Object& set, int64_t end) const {
    for (int64_t number = range(set).first; number < std::min(end, range(set).end); ++number)
      if (!perhaps_available(cluster_state, set, number)) return false;
    return true;
  }
  bool perhaps_available(const ClusterState& cluster_state, const Object& set, int64_t number) const {
    std::vector<ObjectPtr> versions = cluster_state.believable(kPod, {set.ns(), set.name() + "-" + std::to_string(number)});
    return std::any_of(versions.begin(), versions.end(), [&](const ObjectPtr& pod) {
      return available(cluster_state, *pod, set) && !removals_.known(cluster_state, *pod);
    });
  }

  void check_removal(const ClusterState& cluster_state, const std::vector<ObjectPtr>& sets, const Object& pod) const {
    bool no_choice = sets.empty() ||
                     std::any_of(sets.begin(), sets.end(), [](const ObjectPtr& set) { return set->deleting(); }) ||
                     disrupted(cluster_state, pod);
    ObjectPtr ns = cluster_state.find(kNamespace, {"", pod.ns()});
    if (no_choice || !ns || ns->deleting()) return;  // it goes with its set, node or namespace
    if (perhaps(cluster_state, pod, [](const Object& each) { return finished(each); })) return;  // it is replaced
    std::string why;
    for (const ObjectPtr& set : sets) {
      why = range(*set).holds(ordinal(*set, pod.name()).value_or(-1)) ? against_update(cluster_state, *set, pod)
                                                                      : against_scaling(cluster_state, *set, pod);
      if (why.empty()) return;
    }
    cluster_state.violated("statefulsets: removed " + pod.key().text() + ", " + why);
  }

  std::string against_scaling(const ClusterState& cluster_state, const Object& set, const Object& pod) const {
    if (!ordered(set)) return "";
    if (!all_available(cluster_state, set, range(set).end)) return "and not all that stay are available";
    int64_t own = ordinal(set, pod.name()).value_or(-1);
    for (const ObjectPtr& other : cluster_state.controlled(kPod, set)) {
      int64_t number = ordinal(set, other->name()).value_or(-1);
      if (number > own && !range(set).holds(number) && !cluster_state.daemon_unaware_of(*other))
        return "and " + other->name() + " is still there";
    }
    return "";
  }

  std::string against_update(const ClusterState& cluster_state, const Object& set, const Object& pod) const {
    int64_t own = ordinal(set, pod.name()).value_or(-1);
    if (!rolls(set)) return "which is updated when somebody else removes it";
    if (own < range(set).first + partition(set)) return "which is below the partition";
    if (of_template(cluster_state, set, pod)) return "which is of the set's template";
    auto works = [&](const Object& each) { return available(cluster_state, each, set); };
    if (ordered(set) && !perhaps(cluster_state, pod, works)) return "which does not work, and is not to be skipped";
    if (!ordered(set) && limited(set) && !surely(cluster_state, pod, works)) return "";  // it reduces availability by nothing
    int64_t unavailable = 1;
    for (int64_t number = range(set).first; number < range(set).end; ++number) {
      bool counts =
          number != own && (number > own || ordered(set) || limited(set));  // without a limit, each waits for the higher ordinals
      unavailable += counts && !perhaps_available(cluster_state, set, number);
      ObjectPtr behind = number > own ? cluster_state.find(kPod, {set.ns(), set.name() + "-" + std::to_string(number)}) : nullptr;
      if (behind && active(*behind) && !cluster_state.daemon_unaware_of(*behind) && !of_template(cluster_state, set, *behind) &&
          surely(cluster_state, *behind,
                 [&](const Object& each) { return active(each) && !of_template(cluster_state, set, each); }))
        return "before " + behind->name() + ", which is old too";
    }
    if (unavailable > most_unavailable(set)) return "and " + std::to_string(unavailable) + " do not work then";
    return "";
  }

  // ---- claims: a claim is deleted with its owner (rules/ownership.cc), so an owner is only set as the policy requires ----

  static void check_claim(const ClusterState& cluster_state, const Object* before, const Object& claim) {
    for (const OwnerReference& owner : claim.owners()) {
      if (before) {
        std::vector<OwnerReference> had = before->owners();
        if (std::any_of(had.begin(), had.end(), [&](const OwnerReference& each) { return each.uid == owner.uid; })) continue;
      }
      bool of_set = owner.kind == kStatefulSet.kind;
      if (!may_own(cluster_state, claim, owner, of_set))
        cluster_state.violated("statefulsets: " + describe(claim) + " is to go with " + owner.kind + " " + owner.name +
                               ", which its policy does not say");
    }
  }

  static bool may_own(const ClusterState& cluster_state, const Object& claim, const OwnerReference& owner, bool of_set) {
    std::vector<ObjectPtr> sets =
        cluster_state.believable(kStatefulSet, {claim.ns(), of_set ? owner.name : owner.name.substr(0, owner.name.rfind('-'))});
    return std::any_of(sets.begin(), sets.end(), [&](const ObjectPtr& set) {
      if (of_set) return set->uid() == owner.uid && !keeps(*set, "whenDeleted");
      auto number = ordinal(*set, owner.name);
      return number && !range(*set).holds(*number) && !keeps(*set, "whenScaled");
    });
  }

  // ---- at rest ----

  static bool mounts(const Object& pod, const std::string& claim) {
    const json::array& volumes = get_array(pod.json(), "spec.volumes");
    return std::any_of(volumes.begin(), volumes.end(),
                       [&](const json::value& volume) { return get_string(volume, "persistentVolumeClaim.claimName") == claim; });
  }

  // Another object has the name of one of its pods: a former pod of the set whose labels changed.
  static bool name_taken(const ClusterState& cluster_state, const Object& set) {
    std::vector<ObjectPtr> pods = cluster_state.all(kPod, set.ns());
    return std::any_of(pods.begin(), pods.end(), [&](const ObjectPtr& pod) {
      auto number = ordinal(set, pod->name());
      auto owner = pod->controller();
      return number && range(set).holds(*number) && (!owner || owner->uid != set.uid());
    });
  }

  // In order, the set waits at the first pod that is not ready.
  static int64_t first_waited_for(const ClusterState& cluster_state, const Object& set) {
    int64_t first = std::numeric_limits<int64_t>::max();
    if (get_string(set.json(), "spec.podManagementPolicy") == "Parallel") return first;
    for (const ObjectPtr& pod : cluster_state.controlled(kPod, set))
      if (!ready(*pod) || pod->deleting()) first = std::min(first, ordinal(set, pod->name()).value_or(first));
    return first;
  }

  static void check_rest(const ClusterState& cluster_state, const Object& set) {
    std::string name = "statefulsets: " + describe(set) + ": ";
    std::string_view current = get_string(set.json(), "status.currentRevision"),
                     update = get_string(set.json(), "status.updateRevision");
    Range range = simulation::range(set);
    int64_t all = 0, good = 0, of_current = 0, updated = 0, here = 0, well = 0, beyond = 0, beyond_and_unready = 0;
    bool due = true, fixed = false,
         hindered = !cluster_state.all(kResourceQuota, set.ns()).empty() || name_taken(cluster_state, set);
    const int64_t waited_for = first_waited_for(cluster_state, set);
    for (const ObjectPtr& pod : cluster_state.controlled(kPod, set)) {
      int64_t number = ordinal(set, pod->name()).value_or(-1);
      std::string_view label = pod->label("controller-revision-hash");
      ++all, good += ready(*pod), of_current += label == current, updated += label == update;
      here += range.holds(number), beyond += !range.holds(number);
      beyond_and_unready += !range.holds(number) && !ready(*pod);
      well += range.holds(number) && active(*pod) && ready(*pod);
      due &= number < range.first + partition(set) || of_template(cluster_state, set, *pod);
      for (const json::value& claim : get_array(set.json(), "spec.volumeClaimTemplates")) {
        std::string wanted = std::string(get_string(claim, "metadata.name")) + "-" + pod->name();
        bool mounted = mounts(*pod, wanted);
        fixed |= !mounted;  // the pod was adopted from a set without claims; its volumes are immutable, so the set cannot
                            // continue
        if (mounted && range.holds(number) && number <= waited_for &&
            !cluster_state.find(kPersistentVolumeClaim, {set.ns(), wanted}))
          return cluster_state.violated(name + "claim " + wanted + " is missing");
      }
    }
    struct Count {
      const char* name;
      int64_t value;
    };
    bool complete = rolls(set) && updated == range.end - range.first && all == updated && good == updated;
    if (complete) of_current = updated;
    for (const Count& count : {Count{"replicas", all}, Count{"readyReplicas", good}, Count{"availableReplicas", good},
                               Count{"currentReplicas", of_current}, Count{"updatedReplicas", updated},
                               Count{"observedGeneration", get_int(set.json(), "metadata.generation")}}) {
      int64_t told = get_int(set.json(), std::string("status.") + count.name);
      if (told != count.value)
        return cluster_state.violated(name + "status." + count.name + " is " + std::to_string(told) + ", not " +
                                      std::to_string(count.value));
    }
    hindered |= fixed;
    ObjectPtr revision = cluster_state.find(kControllerRevision, {set.ns(), std::string(update)});
    if (!revision) return cluster_state.violated(name + "updateRevision " + std::string(update) + " does not exist");
    if (complete && current != update) return cluster_state.violated(name + "is updated, and says " + std::string(current));
    bool all_well = well == range.end - range.first;
    if (here < range.end - range.first && !hindered && !(ordered(set) && well < here))
      return cluster_state.violated(name + std::to_string(here) + " pods are there");
    // In order, a pod beyond the range that is not available is waited for, unless it is the first such pod: of two, below and
    // above the range, neither is deleted, and no update continues.
    bool stuck = ordered(set) && beyond > 0 && beyond_and_unready > 1;
    if (beyond > 0 && (all_well || !ordered(set)) && !hindered && !stuck)
      return cluster_state.violated(name + std::to_string(beyond) + " pods are too many");
    if (all_well && rolls(set) && !due && !fixed && !stuck) return cluster_state.violated(name + "a pod is of an old template");
    if (int64_t kept = revisions_kept(cluster_state, set), limit = get_int(set.json(), "spec.revisionHistoryLimit", 10);
        kept > limit)
      cluster_state.violated(name + "keeps " + std::to_string(kept) + " revisions of " + std::to_string(limit));
  }

  Removals removals_;
};

}  // namespace

std::unique_ptr<Rule> stateful_sets_rule() { return std::make_unique<StatefulSetsRule>(); }

}  // namespace coracle::simulation
