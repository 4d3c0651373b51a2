// SPDX-License-Identifier: Apache-2.0
// The strategies of all folders. See strategy.h.
#include "store/kinds/strategy.h"

namespace coracle::kinds {

#ifndef CORACLE_KIND_STRATEGIES
#define CORACLE_KIND_STRATEGIES "store/schema/strategies.inc"  // a test brings one kind more
#endif
#include CORACLE_KIND_STRATEGIES

const Strategy& strategy_of(const Kind& kind) {
  static constexpr Strategy none;
  for (const StrategyFamily* family : kStrategyFamilies)
    for (const Strategy& strategy : family->strategies)
      if (strategy.kind && *strategy.kind == kind) return strategy;
  return none;
}

}  // namespace coracle::kinds
