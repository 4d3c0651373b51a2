// SPDX-License-Identifier: Apache-2.0
// Deployments: the ReplicaSets together never request more pods than replicas and maxSurge, as Kubernetes counts (spec.replicas
// of the sets), for any state of the Deployment that the daemon may still assume. Available pods, as in the sets' statuses, are
// not reduced below replicas minus maxUnavailable, except when the Deployment is scaled: then its sets shrink in proportion. With
// Recreate, pods of two templates never run at once. Source: Kubernetes Deployment, "Rolling Update Deployment", "Recreate
// Deployment".
#include <algorithm>
#include <set>

#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {
namespace {

constexpr std::string_view kDesired = "deployment.kubernetes.io/desired-replicas";

int64_t limit_or_default(const json::value* limit, int64_t replicas, bool round_up) {
  static const json::value quarter("25%");
  return scaled_value(limit ? *limit : quarter, replicas, round_up);
}

bool recreates(const Object& deployment) { return get_string(deployment.json(), "spec.strategy.type") == "Recreate"; }

struct Fences {
  int64_t replicas = 0, most = 0, least = 0;
};

Fences fences(const Object& deployment) {
  int64_t replicas = get_int(deployment.json(), "spec.replicas", 1);
  if (recreates(deployment)) return {replicas, replicas, 0};
  int64_t surge = limit_or_default(find(deployment.json(), "spec.strategy.rollingUpdate.maxSurge"), replicas, true);
  int64_t unavailable = limit_or_default(find(deployment.json(), "spec.strategy.rollingUpdate.maxUnavailable"), replicas, false);
  if (surge == 0 && unavailable == 0) unavailable = 1;
  return {replicas, replicas + surge, std::max<int64_t>(0, replicas - unavailable)};
}

json::value template_without_hash(const Object& object) {
  json::value pod_template = *find(object.json(), "spec.template");
  make(pod_template, "metadata.labels").get_object().erase("pod-template-hash");
  return pod_template;
}

class RolloutRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (actor == Actor::user && *change.kind == kReplicaSet && change.after) note_raised(change);
    if (actor != Actor::daemon) return;
    if (*change.kind == kReplicaSet && change.after) check_surge(cluster_state, change);
    if (*change.kind == kPod && !change.before) check_recreate(cluster_state, *change.after);
    if (*change.kind == kReplicaSet && change.before && change.after) check_availability(cluster_state, change);
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& deployment : cluster_state.all(kDeployment)) check_rest(cluster_state, *deployment);
  }

 private:
  void note_raised(const Change& change) {
    auto owner = change.after->controller();
    bool raised = get_int(change.after->json(), "spec.replicas", 1) >
                  (change.before ? get_int(change.before->json(), "spec.replicas", 1) : 0);
    if (owner && raised) raised_.insert(owner->uid);
  }

  static void check_surge(const ClusterState& cluster_state, const Change& change) {
    const Object& set = *change.after;
    int64_t before = change.before ? get_int(change.before->json(), "spec.replicas", 1) : 0;
    if (get_int(set.json(), "spec.replicas", 1) <= before) return;
    std::vector<ObjectPtr> deployments = cluster_state.believable_owner(kDeployment, set);
    if (deployments.empty()) return;
    int64_t most = 0, there = 0;
    for (const ObjectPtr& deployment : deployments) most = std::max(most, fences(*deployment).most);
    for (const ObjectPtr& each : cluster_state.controlled(kReplicaSet, *deployments.front()))
      there += each->uid() == set.uid()                 ? get_int(set.json(), "spec.replicas", 1)
               : cluster_state.daemon_unaware_of(*each) ? 0
                                                        : sizes(cluster_state, *each).first;
    if (there > most)
      cluster_state.violated("rollout: " + set.key().text() + " grows from " + std::to_string(before) +
                             ", and all sets together to " + std::to_string(there) + " of at most " + std::to_string(most));
  }

  void check_recreate(const ClusterState& cluster_state, const Object& pod) const {
    auto owner = pod.controller();
    if (!owner || owner->kind != kReplicaSet.kind) return;
    ObjectPtr set = cluster_state.find(kReplicaSet, {pod.ns(), owner->name});
    if (!set || set->uid() != owner->uid) return;
    std::vector<ObjectPtr> deployments = cluster_state.believable_owner(kDeployment, *set);
    if (deployments.size() != 1 || !recreates(*deployments.front())) return;  // it may have used another state
    if (template_without_hash(*set) != template_without_hash(*deployments.front())) return;
    if (raised_.contains(deployments.front()->uid())) return;  // the user has scaled up an old set beside the new one
    for (const ObjectPtr& other : cluster_state.controlled(kReplicaSet, *deployments.front())) {
      if (other->uid() == set->uid() || get_int(other->json(), "spec.replicas", 1) > 0) continue;
      for (const ObjectPtr& old : cluster_state.controlled(kPod, *other))
        if (!finished(*old))
          return cluster_state.violated("rollout: made " + pod.key().text() + " while " + old->key().text() +
                                        " of another template still runs");
    }
  }

  // The smallest and the largest size of the set that its controller may assume.
  static std::pair<int64_t, int64_t> sizes(const ClusterState& cluster_state, const Object& set) {
    std::pair<int64_t, int64_t> sizes{INT64_MAX, 0};
    for (const ObjectPtr& each : cluster_state.believable_to_writer(kReplicaSet, set.key())) {
      int64_t size = get_int(each->json(), "spec.replicas", 1);
      sizes = {std::min(sizes.first, size), std::max(sizes.second, size)};
    }
    return sizes;
  }

  // The smallest and the largest number of available pods of a set that the daemon may assume.
  static std::pair<int64_t, int64_t> told_available(const ClusterState& cluster_state, const Object& set) {
    std::pair<int64_t, int64_t> told{INT64_MAX, 0};
    for (const ObjectPtr& each : cluster_state.believable(kReplicaSet, set.key())) {
      int64_t available = get_int(each->json(), "status.availableReplicas");
      told = {std::min(told.first, available), std::max(told.second, available)};
    }
    return told;
  }

  // A set that shrinks below its available pods leaves enough available ones, its own and those of other sets, which must not be
  // terminating.
  static void check_availability(const ClusterState& cluster_state, const Change& change) {
    const Object& set = *change.after;
    int64_t size = get_int(set.json(), "spec.replicas", 1);
    if (size >= get_int(change.before->json(), "spec.replicas", 1) || size >= told_available(cluster_state, set).first) return;
    // When its Deployment is scaled down, the set shrinks in proportion, whatever its pods do.
    if (set.annotation(kDesired) != change.before->annotation(kDesired)) return;
    std::vector<ObjectPtr> deployments = cluster_state.believable_owner(kDeployment, set);
    if (deployments.empty()) return;
    int64_t least = INT64_MAX, there = 0;
    for (const ObjectPtr& deployment : deployments) {
      if (get_bool(deployment->json(), "spec.paused")) return;  // then a size that a user raised is scaled in proportion too
      least = std::min(least, fences(*deployment).least);
    }
    for (const ObjectPtr& each : cluster_state.controlled(kReplicaSet, *deployments.front())) {
      // The same holds when a user restores a set with an outdated size annotation: all sets are scaled in proportion.
      if (get_int(each->json(), "spec.replicas", 1) > 0 && each->annotation(kDesired) != set.annotation(kDesired)) return;
    }
    for (const ObjectPtr& each : cluster_state.controlled(kReplicaSet, *deployments.front()))
      there += std::min(told_available(cluster_state, *each).second, sizes(cluster_state, *each).second);
    if (there < least)
      cluster_state.violated("rollout: " + set.key().text() + " shrinks to " + std::to_string(size) + ", and " +
                             std::to_string(there) + " of at least " + std::to_string(least) + " remain available");
  }

  void check_rest(const ClusterState& cluster_state, const Object& deployment) {
    Fences fence = fences(deployment);
    std::string name = "rollout: " + describe(deployment) + ": ";
    int64_t there = 0, good = 0, updated = 0, asked = 0, old_asked = 0;
    ObjectPtr current;
    std::vector<ObjectPtr> sets = cluster_state.controlled(kReplicaSet, deployment);
    for (const ObjectPtr& set : sets) {
      bool is_current = !current && template_without_hash(*set) == template_without_hash(deployment);
      if (is_current) current = set;
      asked += get_int(set->json(), "spec.replicas", 1);
      if (!is_current) old_asked += get_int(set->json(), "spec.replicas", 1);
      for (const ObjectPtr& pod : cluster_state.controlled(kPod, *set)) {
        there += active(*pod);
        good += active(*pod) && ready(*pod);
        updated += active(*pod) && is_current;
      }
    }
    struct Count {
      const char* name;
      int64_t value;
    };
    for (const Count& count :
         {Count{"replicas", there}, Count{"readyReplicas", good}, Count{"availableReplicas", good},
          Count{"updatedReplicas", updated}, Count{"observedGeneration", get_int(deployment.json(), "metadata.generation")}}) {
      int64_t told = get_int(deployment.json(), std::string("status.") + count.name);
      if (told != count.value)
        return cluster_state.violated(name + "status." + count.name + " is " + std::to_string(told) + ", not " +
                                      std::to_string(count.value));
    }
    if (asked > fence.most && !raised_.contains(deployment.uid()))
      return cluster_state.violated(name + "asks for " + std::to_string(asked) + " pods of at most " +
                                    std::to_string(fence.most));
    bool paused = get_bool(deployment.json(), "spec.paused");
    if (paused) return;
    if (!current) return cluster_state.violated(name + "has no set of its template");
    bool all_run = good == there && there == asked;  // no obstacle: no quota, no full node, no pod that never becomes ready
    int64_t wanted = get_int(current->json(), "spec.replicas", 1);
    if (all_run && (wanted != fence.replicas || old_asked != 0))
      return cluster_state.violated(name + "stands still: " + std::to_string(wanted) + " new and " + std::to_string(old_asked) +
                                    " old, wanted " + std::to_string(fence.replicas));
    std::string_view reason, progressing;
    for (const json::value& condition : get_array(deployment.json(), "status.conditions"))
      if (get_string(condition, "type") == "Progressing")
        progressing = get_string(condition, "status"), reason = get_string(condition, "reason");
    if (all_run && reason != "NewReplicaSetAvailable")
      return cluster_state.violated(name + "is complete, and says " + std::string(reason));
    if (all_run) {
      const json::value* limit = find(deployment.json(), "spec.revisionHistoryLimit");
      if (limit && int64_t(sets.size()) - 1 > limit->to_number<int64_t>())
        cluster_state.violated(name + "keeps " + std::to_string(sets.size() - 1) + " old sets");
    } else if (updated < fence.replicas || good < fence.replicas) {
      if (progressing == "True" && reason != "NewReplicaSetAvailable")
        cluster_state.violated(name + "does not move, and says " + std::string(reason));
    }
  }

  std::set<std::string>
      raised_;  // uids of Deployments with a set that the user scaled up: pods that never become ready keep it that way
};

}  // namespace

std::unique_ptr<Rule> rollout_rule() { return std::make_unique<RolloutRule>(); }

}  // namespace coracle::simulation
