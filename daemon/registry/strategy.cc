// SPDX-License-Identifier: Apache-2.0
// The table of strategies. See strategy.h.
#include "daemon/registry/strategy.h"

#include "daemon/registry/kinds/kinds.h"

namespace coracle::registry {

const Strategy& strategy_of(const Kind& kind) {
  static const Strategy plain;
  static const Strategy* const all[] = {
      &pod_strategy(),        &service_strategy(),     &namespace_strategy(),      &job_strategy(),
      &volume_strategy(),     &claim_strategy(),       &priority_class_strategy(), &certificate_request_strategy(),
      &daemon_set_strategy(), &api_service_strategy(), &resource_slice_strategy(), &definition_strategy()};
  for (const Strategy* strategy : all)
    if (*strategy->kind == kind) return *strategy;
  return plain;
}

}  // namespace coracle::registry
