// SPDX-License-Identifier: Apache-2.0
// Decides the node of one pod, or why there is none and which pods to preempt; explain() gives the complete reasons. Pure.
// Messages begin with Kubernetes' text, so that scripts recognize it; details follow.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/scheduler/framework.h"

namespace coracle::scheduler {

constexpr size_t kNodesNamedMax = 3;  // nodes named in a message; the others are counted

// "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable."
class ReasonCount {
 public:
  void add(const std::string& reason) { ++counts_[reason]; }
  std::string text(size_t nodes) const;

 private:
  std::map<std::string, size_t> counts_;
};

struct Decision {
  std::string node;                // "" if no node fits
  std::string message;             // the reason, if no node fits
  PluginSet refused;               // the plugins that rejected a node, if no node fits
  std::vector<Write> before_bind;  // written before the pod is bound
  PostFilterResult post_filter;    // the result of PostFilter, if no node fits
};

// `start`: the position at which filtering begins in a large cluster; it is advanced.
Decision decide(const Framework& framework, const PodInfoPtr& pod, Cluster& cluster, const Lister& lister,
                const Nominations& nominations, size_t& start);

// The complete evaluation:
//   {nodes: [{name, fits, filters: [{plugin, ok, reasons: [{text, figures}]}],
//            scores: [{plugin, raw, normalized, weight, total}], total}],
//    best: the node that the pod would get now ("" if none), message, missing: [what is lacking, by node],
//    cures: [what would help, by node], preemption: {node, victims}}
// A pod that is on a node is evaluated as if it were not.
json::object explain(const Framework& framework, const PodInfoPtr& pod, Cluster& cluster, const Lister& lister,
                     const Nominations& nominations);

}  // namespace coracle::scheduler
