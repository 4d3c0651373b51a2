// SPDX-License-Identifier: Apache-2.0
// The pure part of the DaemonSet controller: the set, the nodes and its pods → on which nodes to make a pod, which pods to
// remove, and the status to write. Only when every node has what it should does an update take its next step.
//   each node: should it have a pod? may it keep one? ▸ make, remove what ended, what is too many, what is misplaced
//     ▸ replace pods of other revisions, within maxUnavailable or maxSurge
// Source: Kubernetes DaemonSet; KEP-1591 (maxSurge); reasons and words of the events are Kubernetes'.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/controller/common.h"

namespace coracle::controller {

constexpr size_t kDaemonSetBurst = 250;  // pods made, and pods removed, in one reconcile

struct DaemonSetWorld {
  ObjectPtr set;
  std::string hash;  // of the revision of the set's template
  int64_t collisions = 0;
  std::vector<ObjectPtr> nodes;
  std::vector<ObjectPtr> pods;    // those it controls
  std::set<std::string> removed;  // uids of pods that go, though they do not say so yet
  // How long a pod that failed on this node still stays, lest one follows the other as fast as they fail. Nothing: it may go.
  std::function<std::optional<std::chrono::nanoseconds>(const std::string& node)> backing_off;
};

struct DaemonSetPlan {
  struct Removal {
    ObjectPtr pod;
    std::string failed_on;        // the node on which it failed, "" when it did not
    std::string reason, message;  // of an event about it, "" for none
  };
  std::vector<std::string> create;  // nodes
  std::vector<Removal> remove;
  json::value status;
  std::optional<std::chrono::nanoseconds> again;
};

DaemonSetPlan plan_daemon_set(const DaemonSetWorld& world, WallTime now);

// Ready to be created: bound to its node by affinity, so that the scheduler, which knows what else is there, lets it in.
json::value daemon_pod(const Object& set, const std::string& hash, const std::string& node);

struct NodeFit {
  bool should_run = false;       // a pod is to be made there
  bool should_continue = false;  // one that is there may stay
};
// By the node's name, the template's node selector and affinity, and the node's taints.
NodeFit fit(const Object& set, const Object& node);

}  // namespace coracle::controller
