// SPDX-License-Identifier: Apache-2.0
// The pure part of the ReplicaSet controller: how many pods to create, which ones to delete, and the status. Source: Kubernetes
// ReplicaSet, with its documented order of deletion.
#pragma once

#include <string>
#include <vector>

#include "daemon/controller/workload/pod_control.h"

namespace coracle::controller {

constexpr int64_t kReplicaSetBurst = 500;  // pods created or deleted per reconcile

struct ReplicaSetPlan {
  int64_t create = 0;
  std::vector<ObjectPtr> remove;
};

// `active`: the set's pods that are neither finished nor being deleted. `siblings`: active pods of all sets with the same
// controller (a Deployment), including `active`. Pods on nodes with many of them are deleted first.
ReplicaSetPlan plan_replica_set(int64_t replicas, std::vector<ObjectPtr> active, const std::vector<ObjectPtr>& siblings);

json::value replica_set_status(const Object& set, const std::vector<ObjectPtr>& active, size_t terminating,
                               const Failure& failure, WallTime now);

}  // namespace coracle::controller
