// SPDX-License-Identifier: Apache-2.0
// APIServices: the initial status. Source: kube-aggregator, pkg/registry/apiservice/strategy.go.
#include "runtime/base/clock.h"
#include "store/kinds/strategy.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

// A version that this server serves itself is available at once.
Result<void> mark_local(json::value& object, const Allocation& allocation) {
  if (view::APIService(object).spec().service()) return {};
  json::object condition{{"type", "Available"},
                         {"status", "True"},
                         {"lastTransitionTime", format_time(allocation.now)},
                         {"reason", "Local"},
                         {"message", "Local APIServices are always available"}};
  make(object, "status.conditions") = json::array{std::move(condition)};
  return {};
}

}  // namespace

extern const StrategyFamily api_service_strategies;
const StrategyFamily api_service_strategies{{{.kind = &kApiService, .allocate_create = mark_local}}};

}  // namespace coracle::kinds
