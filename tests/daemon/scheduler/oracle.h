// SPDX-License-Identifier: Apache-2.0
// The oracle: Kubernetes' rules of scheduling read plainly, over JSON, one node and one pod after the other, without an index or
// a shortcut. It shares no code with daemon/scheduler and is what that is held against. As slow as it is simple. Source: the
// Kubernetes documentation (Assigning Pods to Nodes, Taints and Tolerations, Pod Topology Spread Constraints, Resource
// Management, Resource Bin Packing, Pod Priority and Preemption) and the formulas of the default plugins.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace coracle::oracle {

struct ClusterState {
  std::vector<json::value> nodes, pods, namespaces, services, budgets;  // pods: with spec.nodeName
};

struct Answer {
  std::set<std::string> feasible;
  std::map<std::string, std::map<std::string, int64_t>> scores;  // plugin → node → normalized, of the feasible nodes
  std::map<std::string, int64_t> totals;                         // with the default weights
};

Answer consult(const ClusterState& cluster_state, const json::value& pod);

// Who would have to go from each node for a pod that fits nowhere, the most important first, and where they matter least; "" when
// it may ask nobody to. No two pods that have the same priority started at the same time.
struct Sacrifice {
  std::map<std::string, std::vector<std::string>> victims;  // of the nodes where it helps
  std::string best;
};
Sacrifice consult_preemption(const ClusterState& cluster_state, const json::value& pod);

}  // namespace coracle::oracle
