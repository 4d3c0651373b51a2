// SPDX-License-Identifier: Apache-2.0
// See strategy.h: the table.
#include "daemon/registry/strategy.h"

#include "daemon/registry/kinds/kinds.h"

namespace coracle::registry {

const Strategy& strategy_of(const Kind& kind) {
  static const Strategy plain;
  static const Strategy* const all[] = {&pod_strategy(),     &service_strategy(), &namespace_strategy(), &workload_strategy(kDeployment),
                                        &workload_strategy(kReplicaSet), &endpoints_strategy(kEndpoints),
                                        &endpoints_strategy(kEndpointSlice), &upsert_strategy(kEvent), &upsert_strategy(kLease)};
  for (const Strategy* strategy : all)
    if (*strategy->kind == kind) return *strategy;
  return plain;
}

}  // namespace coracle::registry
