// SPDX-License-Identifier: Apache-2.0
// The pure part of the ReplicaSet controller: how many pods to make, which to remove, what the status says.
// Source: Kubernetes ReplicaSet; the order of removal is its documented one.
#pragma once

#include <string>
#include <vector>

#include "daemon/controller/pod_control.h"

namespace coracle::controller {

constexpr int64_t kReplicaSetBurst = 500;  // pods made or removed in one reconcile

struct ReplicaSetPlan {
  int64_t create = 0;
  std::vector<ObjectPtr> remove;
};

// `active`: the set's pods that are neither finished nor being deleted. `siblings`: active pods of all sets with the
// same controller (a Deployment's), among them `active`: pods on crowded nodes go first.
ReplicaSetPlan plan_replica_set(int64_t replicas, std::vector<ObjectPtr> active, const std::vector<ObjectPtr>& siblings);

json::value replica_set_status(const Object& set, const std::vector<ObjectPtr>& active, size_t terminating,
                               const Failure& failure, WallTime now);

}  // namespace coracle::controller
