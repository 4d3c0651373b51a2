// SPDX-License-Identifier: Apache-2.0
// What pods ask for and nodes offer, and who a node does not take whatever space it has: what the rules of the scheduler have in
// common. Source: Kubernetes scheduling: NodeUnschedulable, TaintToleration, NodeResourcesFit.
#pragma once

#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {

struct Resources {
  int64_t cpu = 0, memory = 0, pods = 0;  // thousandths of a core, bytes, how many
  // With all that is used, of which `more` is what comes: who asks for nothing finds it everywhere.
  bool holds(const Resources& used, const Resources& more) const {
    return (more.cpu == 0 || used.cpu <= cpu) && (more.memory == 0 || used.memory <= memory) && used.pods <= pods;
  }
  friend Resources operator+(const Resources& a, const Resources& b) {
    return {a.cpu + b.cpu, a.memory + b.memory, a.pods + b.pods};
  }
};

Resources asked(const Object& pod);
Resources offered(const Object& node);
bool tolerates(const json::value& toleration, const json::value& taint);
bool takes(const Object& node, const Object& pod);  // by its cordon and its taints
// The pod's claims have their volumes and the node reaches them, or would have them there.
bool has_volumes(const ClusterState& cluster_state, const Object& node, const Object& pod);

}  // namespace coracle::simulation
