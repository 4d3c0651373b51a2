// SPDX-License-Identifier: Apache-2.0
// ResourceSlices: the times of device taints. Source: Kubernetes 1.36, pkg/registry/resource/resourceslice/strategy.go.
#include "runtime/base/clock.h"
#include "store/kinds/strategy.h"
#include "store/schema/members.h"

namespace coracle::kinds {
namespace {

// Sets the time of new taints.
void date_taints(json::value& object, WallTime now) {
  json::object* spec = schema::object_at(object.get_object(), "spec");
  json::array* devices = spec ? schema::array_at(*spec, "devices") : nullptr;
  if (!devices) return;
  for (json::value& device : *devices) {
    json::array* taints = device.is_object() ? schema::array_at(device.get_object(), "taints") : nullptr;
    if (!taints) continue;
    for (json::value& taint : *taints) {
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
