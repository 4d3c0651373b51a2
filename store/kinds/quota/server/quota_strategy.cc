// SPDX-License-Identifier: Apache-2.0
// LimitRanges: one that comes without a name is named after its uid. Source: kubernetes pkg/registry/core/limitrange/strategy.go.
#include <string>

#include "store/kinds/strategy.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

void name_limit_range(json::value& object) {
  view::ObjectMeta metadata = view::LimitRange(object).metadata();
  if (!metadata.name().empty()) return;
  std::string uid(metadata.uid());
  make(object, "metadata.name") = uid;
}

}  // namespace

extern const StrategyFamily quota_strategies;
const StrategyFamily quota_strategies{{{.kind = &kLimitRange, .prepare_create = name_limit_range}}};

}  // namespace coracle::kinds
