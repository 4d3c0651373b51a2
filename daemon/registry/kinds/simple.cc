// SPDX-License-Identifier: Apache-2.0
// Kinds of which the pipeline needs to know a flag only: workloads, endpoints, events, leases.
#include "daemon/registry/kinds/kinds.h"

namespace coracle::registry {
namespace {

Strategy with(const Kind& kind, bool counts_generations, bool creates_on_update) {
  Strategy strategy;
  strategy.kind = &kind;
  strategy.deletion.counts_generations = counts_generations;
  strategy.creates_on_update = creates_on_update;
  return strategy;
}

}  // namespace

const Strategy& workload_strategy(const Kind& kind) {
  static const Strategy deployment = with(kDeployment, true, false), replicaset = with(kReplicaSet, true, false);
  return kind == kDeployment ? deployment : replicaset;
}

const Strategy& endpoints_strategy(const Kind& kind) {
  static const Strategy endpoints = with(kEndpoints, false, true), slice = with(kEndpointSlice, true, false);
  return kind == kEndpoints ? endpoints : slice;
}

const Strategy& upsert_strategy(const Kind& kind) {
  static const Strategy event = with(kEvent, false, true), lease = with(kLease, false, true);
  return kind == kEvent ? event : lease;
}

}  // namespace coracle::registry
