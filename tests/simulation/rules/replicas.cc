// SPDX-License-Identifier: Apache-2.0
// ReplicaSets and ReplicationControllers: no pod is created for a slot that has one. Judged by what the daemon could know: the
// set as its cache may still show it, without pods whose creation was not acknowledged. At rest, surplus pods are deleted.
// Source: Kubernetes ReplicaSet; client-go controller expectations.
#include <algorithm>

#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {
namespace {

class ReplicasRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    bool made = actor == Actor::daemon && *change.kind == kPod && !change.before;
    if (!made) return;
    auto owner = change.after->controller();
    if (!owner) return;
    for (const Kind* kind : {&kReplicaSet, &kReplicationController})
      if (owner->kind == kind->kind) check_creation(cluster_state, *kind, *owner, *change.after);
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const Kind* kind : {&kReplicaSet, &kReplicationController})
      for (const ObjectPtr& set : cluster_state.all(*kind)) check_rest(cluster_state, *set);
  }

 private:
  static void check_creation(const ClusterState& cluster_state, const Kind& kind, const OwnerReference& owner,
                             const Object& pod) {
    int64_t most = -1;
    for (const ObjectPtr& set : cluster_state.believable(kind, {pod.ns(), owner.name}))
      if (set->uid() == owner.uid) most = std::max(most, get_int(set->json(), "spec.replicas", 1));
    if (most < 0)
      return cluster_state.violated("replicas: made " + pod.key().text() + " for a set that the daemon knows is gone");
    int64_t there = 0;
    for (const ObjectPtr& other : cluster_state.all(kPod, pod.ns())) {
      auto controller = other->controller();
      bool counts = controller && controller->uid == owner.uid && active(*other) &&
                    (other->uid() == pod.uid() || !cluster_state.daemon_unaware_of(*other));
      there += counts;
    }
    if (there > most)
      cluster_state.violated("replicas: made " + pod.key().text() + ", the " + std::to_string(there) + ". of " +
                             std::to_string(most));
  }

  static void check_rest(const ClusterState& cluster_state, const Object& set) {
    int64_t wanted = get_int(set.json(), "spec.replicas", 1), there = 0, good = 0, going = 0;
    for (const ObjectPtr& pod : cluster_state.controlled(kPod, set)) {
      there += active(*pod);
      good += active(*pod) && ready(*pod);
      going += pod->deleting();
    }
    std::string name = "replicas: " + describe(set) + ": ";
    auto failure = [&] {
      const json::array& conditions = get_array(set.json(), "status.conditions");
      return std::any_of(conditions.begin(), conditions.end(),
                         [](const json::value& c) { return get_string(c, "type") == "ReplicaFailure"; });
    };
    bool hindered = !cluster_state.all(kResourceQuota, set.ns()).empty() && there < wanted;
    if (there != wanted && !hindered)
      return cluster_state.violated(name + std::to_string(there) + " pods, wanted " + std::to_string(wanted));
    if (hindered != failure())
      return cluster_state.violated(name + (hindered ? "does not say that it is hindered" : "says that something hinders it"));
    struct Count {
      const char* name;
      int64_t value;
    };
    for (const Count& count : {Count{"replicas", there}, Count{"readyReplicas", good}, Count{"availableReplicas", good},
                               Count{"terminatingReplicas", going}}) {
      int64_t told = get_int(set.json(), std::string("status.") + count.name);
      if (told != count.value)
        return cluster_state.violated(name + "status." + count.name + " is " + std::to_string(told) + ", not " +
                                      std::to_string(count.value));
    }
    if (get_int(set.json(), "status.observedGeneration") != get_int(set.json(), "metadata.generation"))
      cluster_state.violated(name + "has not observed its generation");
  }
};

}  // namespace

std::unique_ptr<Rule> replicas_rule() { return std::make_unique<ReplicasRule>(); }

}  // namespace coracle::simulation
