// SPDX-License-Identifier: Apache-2.0
// The pure part of the DaemonSet controller: the set, the nodes and its pods → the nodes to create pods on, the pods to delete,
// and the status. A rolling update proceeds only when every node has the pods that it should have.
//   each node: should it run a pod? may it keep one? ▸ create; delete pods that ended, are surplus or misplaced
//     ▸ replace pods of other revisions, within maxUnavailable or maxSurge
// Source: Kubernetes DaemonSet; KEP-1591 (maxSurge). Reasons and messages of the events are Kubernetes'.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/controller/shared/common.h"

namespace coracle::controller {

constexpr size_t kDaemonSetBurst = 250;  // pods created, and pods deleted, per reconcile

struct ObservedDaemonSet {
  ObjectPtr set;
  std::string hash;  // of the revision of the set's template
  int64_t collisions = 0;
  std::vector<ObjectPtr> nodes;
  std::vector<ObjectPtr> pods;    // the pods it controls
  std::set<std::string> removed;  // uids of pods that are deleted although the cache does not show it yet
  // The remaining back-off of a failed pod on this node: it is deleted after that, so that failing pods are not replaced without
  // pause. nullopt: delete it now.
  std::function<std::optional<std::chrono::nanoseconds>(const std::string& node)> backing_off;
};

struct DaemonSetPlan {
  struct Removal {
    ObjectPtr pod;
    std::string failed_on;        // the node on which it failed; "" if it has not failed
    std::string reason, message;  // of an event; "" for none
  };
  std::vector<std::string> create;  // names of nodes
  std::vector<Removal> remove;
  json::value status;
  std::optional<std::chrono::nanoseconds> again;
};

DaemonSetPlan plan_daemon_set(const ObservedDaemonSet& observed, WallTime now);

// A pod to create. Node affinity binds it to its node, so that the scheduler checks resources and places it.
json::value daemon_pod(const Object& set, const std::string& hash, const std::string& node);

struct NodeFit {
  bool should_run = false;       // a pod must be created there
  bool should_continue = false;  // an existing pod may stay
};
// From the node's name, the template's node selector and affinity, and the node's taints.
NodeFit fit(const Object& set, const Object& node);

}  // namespace coracle::controller
