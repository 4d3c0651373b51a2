// SPDX-License-Identifier: Apache-2.0
// Decide: the node for one pod, or why there is none and who would have to go; and the same in full, for people. Pure.
// Messages begin as Kubernetes words them, so that scripts find what they look for; the figures follow.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/scheduler/framework.h"

namespace coracle::scheduler {

constexpr size_t kNodesNamedMax = 3;  // in a message; the others are counted

// "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable."
class ReasonCount {
 public:
  void add(const std::string& reason) { ++counts_[reason]; }
  std::string text(size_t nodes) const;

 private:
  std::map<std::string, size_t> counts_;
};

struct Decision {
  std::string node;                // "" when none fits
  std::string message;             // then: why
  PluginSet refused;               // then: by whom, on whichever node
  std::vector<Write> before_bind;  // what is written before the pod is bound
  Rescue rescue;                   // when none fits: who has to go
};

// `start`: where to begin in a large cluster; moves on.
Decision decide(const Framework& framework, const PodInfoPtr& pod, Cluster& cluster, const Lister& lister,
                const Nominations& nominations, size_t& start);

// {nodes: [{name, fits, filters: [{plugin, ok, reasons: [{text, figures}]}], scores: [{plugin, raw, normalized, weight, total}],
// total}],
//  best: the node it would get now ("" when none), message, missing: [what is lacking, by node], cures: [what would help, by
//  node], preemption: {node, victims}}. For a pod that stands somewhere: as if it did not.
json::object explain(const Framework& framework, const PodInfoPtr& pod, Cluster& cluster, const Lister& lister,
                     const Nominations& nominations);

}  // namespace coracle::scheduler
