// SPDX-License-Identifier: Apache-2.0
// ResourceSlices: the times of device taints. Source: Kubernetes 1.36, pkg/registry/resource/resourceslice/strategy.go.
#include "runtime/base/clock.h"
#include "store/kinds/strategy.h"

namespace coracle::kinds {
namespace {

// Sets the time of new taints.
void date_taints(json::value& object, WallTime now) {
  json::value* devices = const_cast<json::value*>(find(object, "spec.devices"));
  if (!devices || !devices->is_array()) return;
  for (json::value& device : devices->get_array()) {
    json::value* taints = device.is_object() ? device.get_object().if_contains("taints") : nullptr;
    if (!taints || !taints->is_array()) continue;
    for (json::value& taint : taints->get_array()) {
      if (taint.is_object() && !taint.get_object().contains("timeAdded")) taint.get_object()["timeAdded"] = format_time(now);
    }
  }
}

Result<void> date_new_taints(json::value& object, const Allocation& allocation) {
  date_taints(object, allocation.now);
  return {};
}

Result<void> date_added_taints(json::value& object, const Object&, const Allocation& allocation) {
  date_taints(object, allocation.now);
  return {};
}

}  // namespace

extern const StrategyFamily device_strategies;
const StrategyFamily device_strategies{
    {{.kind = &kResourceSlice, .allocate_create = date_new_taints, .allocate_update = date_added_taints}}};

}  // namespace coracle::kinds
