// SPDX-License-Identifier: Apache-2.0
// A pod's status, pure: converts the worker's record to the fields that the node owns, and computes the smallest patch that
// leaves the fields of other owners unchanged (PodScheduled, conditions of readiness gates, qosClass). Source: Kubernetes core/v1
// PodStatus; kubelet's status generation (semantics, reasons and texts).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/node/record.h"

namespace coracle::node {

struct StatusContext {
  std::vector<std::string> host_ips;
  bool deleting = false;
  WallTime now;
};

// The node's part of the status: phase, its own conditions, containerStatuses, addresses, startTime.
json::object make_status(const PodRecord& record, const json::value& pod, const StatusContext& context);

// A strategic merge patch that changes the pod's status to `wanted`; nullopt if it is equal already. It contains the uid, so that
// a new pod with the same name is not changed.
std::optional<json::value> status_patch(const json::value& pod, const json::object& wanted);

inline constexpr std::string_view kContainerIdScheme = "coracle://";
// "coracle://" and 64 lower-case hexadecimal digits, as log and metrics collectors expect. Each attempt has another id.
std::string container_id(const PodRecord& record, const ContainerRecord& container);

}  // namespace coracle::node
