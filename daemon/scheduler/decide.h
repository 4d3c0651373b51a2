// SPDX-License-Identifier: Apache-2.0
// Decide: the node for one pod, or why there is none. Pure: pod + cluster → decision.
//   nodes ──filters──▶ feasible ──scores──▶ the best
// Source: Kubernetes scheduler framework's default plugins; reasons are worded as theirs.
#pragma once

#include <string>
#include <vector>

#include "daemon/scheduler/cluster.h"

namespace coracle::scheduler {

// Why a node does not fit; empty when it does.
struct Verdict {
  std::vector<std::string> reasons;
  bool for_good = false;  // no leaving pod would change it
  bool fits() const { return reasons.empty(); }
};
Verdict filter(const Object& pod, const NodeInfo& node, const Cluster& cluster,
               const NamespaceLabels& namespace_labels);

// 0 to 100 each; how much of a node stays free, how evenly cpu and memory are used, how much of the images is there.
int64_t least_allocated(const Object& pod, const NodeInfo& node);
int64_t balanced_allocation(const Object& pod, const NodeInfo& node);
int64_t image_locality(const Object& pod, const NodeInfo& node);

struct Decision {
  std::string node;     // "" when none fits
  std::string message;  // then: "0/1 nodes are available: 1 Insufficient cpu. ..."
};
Decision decide(const Object& pod, const Cluster& cluster, const NamespaceLabels& namespace_labels);

}  // namespace coracle::scheduler
