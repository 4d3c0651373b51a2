// SPDX-License-Identifier: Apache-2.0
// A pod's status, pure: from the worker's record to the fields that the node owns, and from old and new to the smallest
// patch that leaves what others own (PodScheduled, gates' conditions, qosClass) as it is.
// Source: Kubernetes core/v1 PodStatus; kubelet's status generation (semantics, reasons and texts).
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

// status as this node sees it: phase, conditions (its own only), containerStatuses, addresses, startTime.
json::object make_status(const PodRecord& record, const json::value& pod, const StatusContext& context);

// A strategic merge patch that turns the pod's status into `wanted`, or nothing when it says so already. It carries the
// uid, so that a pod made anew under the same name is left alone.
std::optional<json::value> status_patch(const json::value& pod, const json::object& wanted);

inline constexpr std::string_view kContainerIdScheme = "coracle://";
// "coracle://" and 64 lower-case hexadecimal digits, as collectors of logs and metrics expect of a container's id. Each attempt
// has another.
std::string container_id(const PodRecord& record, const ContainerRecord& container);

}  // namespace coracle::node
