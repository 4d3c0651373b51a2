// SPDX-License-Identifier: Apache-2.0
// Requests of pods, capacity of nodes, and which pods a node refuses whatever its capacity: shared by the rules of the scheduler.
// Source: Kubernetes scheduling: NodeUnschedulable, TaintToleration, NodeResourcesFit.
#pragma once

#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {

struct Resources {
  int64_t cpu = 0, memory = 0, pods = 0;  // millicores, bytes, number
  // `used` includes `more`, the new pod's requests: a resource that is not requested always fits.
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
bool takes(const Object& node, const Object& pod);  // by cordon and taints
// The pod's claims have volumes that the node can reach, or volumes would be provisioned there.
bool has_volumes(const ClusterState& cluster_state, const Object& node, const Object& pod);

}  // namespace coracle::simulation
