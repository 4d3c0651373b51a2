// SPDX-License-Identifier: Apache-2.0
// Node lifecycle, the pure part: which taints follow from what is said of a node, and how fast nodes may be emptied.
// Source: Kubernetes "Node Status", "Nodes: rate limits on eviction", "Taint nodes by condition".
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

// The status of a condition of a node: "True", "False", "Unknown"; "" when nobody has said anything.
std::string_view node_condition(const Object& node, std::string_view type);

// What spec.taints is to be: others' taints as they are, NoSchedule ones by the conditions and spec.unschedulable. Of NoExecute,
// the taint that says why it is not ready: `may_empty` whether one may be added where there is none. A node that has said nothing
// yet keeps the taint it was born with. Those that stay keep their time; new ones have `now` as timeAdded.
json::array wanted_taints(const Object& node, bool may_empty, WallTime now);

struct ZoneCount {
  int ready = 0, not_ready = 0;
};
// How long to wait between emptying two nodes of a zone. Nothing: most of a small zone does not answer, and it is more likely the
// network than the nodes; none is emptied.
std::optional<std::chrono::seconds> pace_of(ZoneCount zone);
std::string zone_of(const Object& node);  // region and zone, by label

}  // namespace coracle::controller
