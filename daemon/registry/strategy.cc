// SPDX-License-Identifier: Apache-2.0
// See strategy.h: the table.
#include "daemon/registry/strategy.h"

#include "daemon/registry/kinds/extension.h"
#include "daemon/registry/kinds/kinds.h"

namespace coracle::registry {

const Strategy& strategy_of(const Kind& kind) {
  static const Strategy plain;
  static const Strategy* const all[] = {
      &pod_strategy(),   &service_strategy(),        &namespace_strategy(),           &job_strategy(),  &volume_strategy(),
      &claim_strategy(), &priority_class_strategy(), &certificate_request_strategy(), &node_strategy(), &daemon_set_strategy()};
  for (const Strategy* strategy : all)
    if (*strategy->kind == kind) return *strategy;
  for (auto listed : {simple_strategies(), extension_strategies()})
    for (const Strategy& strategy : listed)
      if (*strategy.kind == kind) return strategy;
  return plain;
}

}  // namespace coracle::registry
