// SPDX-License-Identifier: Apache-2.0
// Ownership: an object without owners, as far as the daemon may know, is only deleted with its namespace or node. At rest,
// nothing deleted is left: no terminating object, no object whose owners are all gone, and none in an absent namespace. Source:
// Kubernetes "Garbage Collection", "Finalizers", "Namespaces".
#include <algorithm>
#include <set>

#include "tests/simulation/rules/jobs.h"

namespace coracle::simulation {
namespace {

// A volume stays while it is Bound, a claim while a pod uses it, and whatever must go after it waits as well.
bool in_use(const ClusterState& cluster_state, const Object& claim) {
  if (claim.kind() == kPersistentVolume) return get_string(claim.json(), "status.phase") == "Bound";
  if (!(claim.kind() == kPersistentVolumeClaim)) {
    std::vector<ObjectPtr> claims = cluster_state.controlled(kPersistentVolumeClaim, claim);
    return std::any_of(claims.begin(), claims.end(),
                       [&](const ObjectPtr& each) { return each->deleting() && in_use(cluster_state, *each); });
  }
  std::vector<ObjectPtr> pods = cluster_state.all(kPod, claim.ns());
  return std::any_of(pods.begin(), pods.end(), [&](const ObjectPtr& pod) {
    const json::array& volumes = get_array(pod->json(), "spec.volumes");
    return !finished(*pod) && std::any_of(volumes.begin(), volumes.end(), [&](const json::value& volume) {
      return get_string(volume, "persistentVolumeClaim.claimName") == claim.name();
    });
  });
}

// For taints without a toleration see nodes.cc, for preemption preemption.cc.
bool is_given_up(const Object& pod) {
  for (const json::value& condition : get_array(pod.json(), "status.conditions"))
    if (get_string(condition, "type") == "DisruptionTarget")
      return get_string(condition, "reason") == "DeletionByTaintManager" ||
             get_string(condition, "reason") == "PreemptionByScheduler";
  return false;
}

class OwnershipRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    bool removed = actor == Actor::daemon && change.removes();
    bool people = *change.kind == kPod || *change.kind == kReplicaSet || *change.kind == kReplicationController ||
                  *change.kind == kDeployment || *change.kind == kJob || *change.kind == kCronJob || *change.kind == kService ||
                  *change.kind == kPodDisruptionBudget || *change.kind == kResourceQuota || *change.kind == kStatefulSet ||
                  *change.kind == kDaemonSet || *change.kind == kPersistentVolumeClaim || *change.kind == kPersistentVolume;
    if (!removed || !people) return;
    for (const ObjectPtr& version : cluster_state.believable(*change.kind, change.before->key()))
      if (version->uid() == change.before->uid() && !version->owners().empty()) return;
    ObjectPtr ns = cluster_state.find(kNamespace, {"", change.before->ns()});
    if (!ns || ns->deleting()) return;
    if (*change.kind == kPod && finished(*change.before)) return;  // beyond the limit of finished pods
    if (*change.kind == kJob && find(change.before->json(), "spec.ttlSecondsAfterFinished")) return;  // see jobs.cc
    if (*change.kind == kPod && is_given_up(*change.before)) return;
    cluster_state.violated("ownership: removed " + describe(*change.before) + ", which nobody owns");
  }

  void at_rest(const ClusterState& cluster_state) override {
    std::vector<ObjectPtr> all = cluster_state.everything();
    std::set<std::string> uids;
    for (const ObjectPtr& object : all) uids.insert(object->uid());
    for (const ObjectPtr& object : all) {
      if (object->deleting() && !in_use(cluster_state, *object) &&
          !(object->kind() == kPod && waits_for_another(cluster_state, *object)))
        return cluster_state.violated("ownership: " + describe(*object) + " still waits to go");
      std::vector<OwnerReference> owners = object->owners();
      bool owned = owners.empty() || std::any_of(owners.begin(), owners.end(),
                                                 [&](const OwnerReference& owner) { return uids.contains(owner.uid); });
      if (!owned) return cluster_state.violated("ownership: " + describe(*object) + " has outlived its owners");
      if (!object->ns().empty() && !cluster_state.find(kNamespace, {"", object->ns()}))
        return cluster_state.violated("ownership: " + describe(*object) + " has no namespace");
    }
  }
};

}  // namespace

std::unique_ptr<Rule> ownership_rule() { return std::make_unique<OwnershipRule>(); }

}  // namespace coracle::simulation
