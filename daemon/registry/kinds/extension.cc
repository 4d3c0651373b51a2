// SPDX-License-Identifier: Apache-2.0
// APIServices and ResourceSlices: the initial status, and the times of device taints. Source: Kubernetes 1.36, the strategy.go of
// each kind under pkg/registry; kube-aggregator, apiextensions-apiserver.
#include "daemon/registry/kinds/kinds.h"
#include "runtime/base/clock.h"

namespace coracle::registry {
namespace {

// A version that this server serves itself is available at once.
Result<void> mark_local(json::value& object, const Allocation& allocation) {
  const json::value* service = find(object, "spec.service");
  if (service && service->is_object()) return {};
  json::object condition{{"type", "Available"},
                         {"status", "True"},
                         {"lastTransitionTime", format_time(allocation.now)},
                         {"reason", "Local"},
                         {"message", "Local APIServices are always available"}};
  make(object, "status.conditions") = json::array{std::move(condition)};
  return {};
}

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

const Strategy& api_service_strategy() {
  static const Strategy strategy{.kind = &kApiService, .allocate_create = mark_local};
  return strategy;
}

const Strategy& resource_slice_strategy() {
  static const Strategy strategy{
      .kind = &kResourceSlice, .allocate_create = date_new_taints, .allocate_update = date_added_taints};
  return strategy;
}

}  // namespace coracle::registry
