// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets and their revisions.
#include "store/kinds/workload/workload_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kWorkloadKinds[] = {
    {.api_version = "v1", .resource = "replicationcontrollers", .status = check_replica_set_status},
    {.api_version = "apps/v1", .resource = "deployments", .update = check_workload_update, .status = check_deployment_status},
    {.api_version = "apps/v1", .resource = "replicasets", .update = check_workload_update, .status = check_replica_set_status},
    {.api_version = "apps/v1",
     .resource = "statefulsets",
     .update = check_stateful_set_update,
     .status = check_stateful_set_status},
    {.api_version = "apps/v1", .resource = "daemonsets", .update = check_workload_update, .status = check_daemon_set_status},
    {.api_version = "apps/v1", .resource = "controllerrevisions", .update = check_revision_update},
};

}  // namespace

extern const KindFamily workload_family;
const KindFamily workload_family{
    .defaults = {workload_defaults},
    .validation = {workload_rules, set_rules},
    .kinds = kWorkloadKinds,
};

}  // namespace coracle::schema
