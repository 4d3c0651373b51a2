// SPDX-License-Identifier: Apache-2.0
// What the rules of StatefulSets and DaemonSets have in common: which template a pod is of, and whether the daemon may take a pod
// for available.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {

bool rolls(const Object& set);  // its update strategy is not OnDelete
// The pod's revision holds the template that the set has.
bool of_template(const ClusterState& cluster_state, const Object& set, const Object& pod);

bool available(const ClusterState& cluster_state, const Object& pod, const Object& set);  // ready, for spec.minReadySeconds
// Some version of it that the daemon may believe in is so; all of them are, but for those in which it is about to go.
bool perhaps(const ClusterState& cluster_state, const Object& pod, const std::function<bool(const Object&)>& so);
bool surely(const ClusterState& cluster_state, const Object& pod, const std::function<bool(const Object&)>& so);

// Its end was somebody else's: preempted, evicted for a taint, of a node that is gone.
bool disrupted(const ClusterState& cluster_state, const Object& pod);

// Which pods their controllers removed: they know it, whatever their caches show, unless the answer was lost.
class Removals {
 public:
  void note(Actor actor, const Change& change, const ClusterState& cluster_state);  // of a pod
  bool known(const ClusterState& cluster_state, const Object& pod) const {
    return uids_.contains(pod.uid()) && !cluster_state.daemon_unaware_of_removal(pod);
  }

 private:
  std::set<std::string, std::less<>> uids_;
};

// How many ControllerRevisions the set has that no pod is of, nor the set itself.
int64_t revisions_kept(const ClusterState& cluster_state, const Object& set);

}  // namespace coracle::simulation
