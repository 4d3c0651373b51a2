// SPDX-License-Identifier: Apache-2.0
// Rules: Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets and their revisions.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> workload_defaults();
std::span<const NamedValidationRule> workload_rules();
std::span<const NamedValidationRule> set_rules();

void check_replica_set_status(const json::value& now, const json::value& before, Findings& out);
void check_workload_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_deployment_status(const json::value& now, const json::value& before, Findings& out);
void check_stateful_set_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_stateful_set_status(const json::value& now, const json::value& before, Findings& out);
void check_daemon_set_status(const json::value& now, const json::value& before, Findings& out);
void check_revision_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

}  // namespace coracle::schema
