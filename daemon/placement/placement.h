// SPDX-License-Identifier: Apache-2.0
// Placement: whether a pod may run on a node by labels, affinity and taints, regardless of other pods. Pure. Shared by the
// scheduler and by controllers that run a pod on each suitable node. Source: Kubernetes "Assigning Pods to Nodes", "Taints and
// Tolerations"; component-helpers scheduling/corev1.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/object/object_ptr.h"
#include "store/schema/views.h"

namespace coracle::placement {

inline constexpr std::string_view kRegionLabel = "topology.kubernetes.io/region", kZoneLabel = "topology.kubernetes.io/zone";

// The zone of a node with these labels, as a key to compare: of region and zone; "" if it has neither. Source: component-helpers
// node/topology (GetZoneKey).
std::string zone_of(const json::object& labels);

// Whether the node, or one with these labels and this name, matches the term. An empty term matches nothing.
bool node_matches(const view::NodeSelectorTerm& term, const Object& node);
bool node_matches(const view::NodeSelectorTerm& term, const json::object& labels, std::string_view name);
// Whether the node matches spec.nodeSelector and the required node affinity.
bool node_wanted(const view::Pod& pod, const Object& node);
bool node_wanted(const view::Pod& pod, const json::object& labels, std::string_view name);
// The first toleration of the pod that tolerates the taint.
std::optional<view::Toleration> toleration_of(const view::Pod& pod, const view::Taint& taint);
inline bool tolerates(const view::Pod& pod, const view::Taint& taint) { return toleration_of(pod, taint).has_value(); }

}  // namespace coracle::placement
