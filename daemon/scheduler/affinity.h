// SPDX-License-Identifier: Apache-2.0
// Who may stand with whom: affinity between pods, spreading over domains. Pure.
// Source: Kubernetes "Assigning Pods to Nodes", "Pod Topology Spread Constraints".
#pragma once

#include <string>

#include "daemon/scheduler/cluster.h"

namespace coracle::scheduler {

enum class PodAffinityVerdict { fits, affinity, anti_affinity, existing_anti_affinity };
PodAffinityVerdict check_pod_affinity(const Object& pod, const NodeInfo& node, const Cluster& cluster,
                                      const NamespaceLabels& namespace_labels);

enum class SpreadVerdict { fits, skewed, missing_label };
SpreadVerdict check_spread(const Object& pod, const NodeInfo& node, const Cluster& cluster);

// Preferences, higher is better; any scale.
int64_t node_preference(const view::Pod& pod, const Object& node);
int64_t pod_preference(const Object& pod, const NodeInfo& node, const Cluster& cluster,
                       const NamespaceLabels& namespace_labels);
int64_t spread_preference(const Object& pod, const NodeInfo& node, const Cluster& cluster);

}  // namespace coracle::scheduler
