// SPDX-License-Identifier: Apache-2.0
// The oracle: Kubernetes' scheduling rules implemented directly, over JSON, for one node and one pod at a time, without indexes
// or shortcuts. It shares no code with daemon/scheduler, whose results are compared with it. It is slow and simple. Source: the
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
  std::map<std::string, std::map<std::string, int64_t>> scores;  // plugin → node → normalized score of feasible nodes
  std::map<std::string, int64_t> totals;                         // with the default weights
};

Answer consult(const ClusterState& cluster_state, const json::value& pod);

// The victims on each node for a pod that fits nowhere, the most important first, and the node with the least loss; "" if
// preemption is not possible. No two pods with the same priority may have the same start time.
struct Sacrifice {
  std::map<std::string, std::vector<std::string>> victims;  // for the nodes where preemption helps
  std::string best;
};
Sacrifice consult_preemption(const ClusterState& cluster_state, const json::value& pod);

}  // namespace coracle::oracle
