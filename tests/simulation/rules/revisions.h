// SPDX-License-Identifier: Apache-2.0
// Shared by the rules of StatefulSets and DaemonSets: the template of a pod, and whether the daemon may take a pod for available.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {

bool rolls(const Object& set);  // its update strategy is not OnDelete
// The pod's revision contains the set's current template.
bool of_template(const ClusterState& cluster_state, const Object& set, const Object& pod);

bool available(const ClusterState& cluster_state, const Object& pod, const Object& set);  // ready for spec.minReadySeconds
// perhaps: the predicate holds for some version that the daemon may assume. surely: it holds for all of them, except versions in
// which the object is terminating.
bool perhaps(const ClusterState& cluster_state, const Object& pod, const std::function<bool(const Object&)>& so);
bool surely(const ClusterState& cluster_state, const Object& pod, const std::function<bool(const Object&)>& so);

// The pod was ended by something else: preemption, taint eviction, or the loss of its node.
bool disrupted(const ClusterState& cluster_state, const Object& pod);

// The pods that controllers deleted: they remember this, whatever their caches show, unless the response was lost.
class Removals {
 public:
  void note(Actor actor, const Change& change, const ClusterState& cluster_state);  // for pods
  bool known(const ClusterState& cluster_state, const Object& pod) const {
    return uids_.contains(pod.uid()) && !cluster_state.daemon_unaware_of_removal(pod);
  }

 private:
  std::set<std::string, std::less<>> uids_;
};

// The number of the set's ControllerRevisions that neither a pod nor the set itself uses.
int64_t revisions_kept(const ClusterState& cluster_state, const Object& set);

}  // namespace coracle::simulation
