// SPDX-License-Identifier: Apache-2.0
// Placement: what nodes say of pods and pods of nodes, apart from who else is there: labels, affinity, taints. Pure; shared
// by the scheduler, which chooses, and those who have a pod for every node that it may stand on.
// Source: Kubernetes "Assigning Pods to Nodes", "Taints and Tolerations"; component-helpers scheduling/corev1.
#pragma once

#include <optional>
#include <string_view>

#include "store/object/object_ptr.h"
#include "store/schema/views.h"

namespace coracle::placement {

std::optional<std::string_view> label_of(const Object& object, std::string_view key);

bool node_matches(const view::NodeSelectorTerm& term, const Object& node);
bool node_matches(const view::NodeSelectorTerm& term, const json::object& labels, std::string_view name);
// spec.nodeSelector and required node affinity.
bool node_wanted(const view::Pod& pod, const Object& node);
bool node_wanted(const view::Pod& pod, const json::object& labels, std::string_view name);
// The first of the pod's tolerations that holds for the taint.
std::optional<view::Toleration> toleration_of(const view::Pod& pod, const view::Taint& taint);
inline bool tolerates(const view::Pod& pod, const view::Taint& taint) { return toleration_of(pod, taint).has_value(); }

}  // namespace coracle::placement
