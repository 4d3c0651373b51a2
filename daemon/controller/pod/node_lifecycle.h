// SPDX-License-Identifier: Apache-2.0
// The pure part of node lifecycle: the taints that follow from a node's conditions, and the rate of evictions from nodes. Source:
// Kubernetes "Node Status", "Nodes: rate limits on eviction", "Taint nodes by condition".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "store/object/object_ptr.h"

namespace coracle::controller {

constexpr std::string_view kNotReadyTaint = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachableTaint = "node.kubernetes.io/unreachable";

// The status of a node's condition: "True", "False", "Unknown"; "" if it is absent.
std::string_view node_condition(const Object& node, std::string_view type);

// The desired spec.taints: other clients' taints are kept; NoSchedule taints follow the conditions and spec.unschedulable.
// NoExecute: the taint for the reason why the node is not ready; `may_empty`: a first one may be added. A node without conditions
// keeps the taint that it was created with. Existing taints keep their timeAdded; new ones get `now`.
json::array wanted_taints(const Object& node, bool may_empty, WallTime now);

struct ZoneCount {
  int ready = 0, not_ready = 0;
};
// The time between evictions from two nodes of a zone. nullopt: most nodes of a small zone do not respond, so the network is
// probably at fault; no node is emptied.
std::optional<std::chrono::seconds> pace_of(ZoneCount zone);

}  // namespace coracle::controller
