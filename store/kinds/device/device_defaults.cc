// SPDX-License-Identifier: Apache-2.0
// Defaults of resource claims. Source: Kubernetes pkg/apis/resource/v1/defaults.go.
#include "store/kinds/device/device_kinds.h"

namespace coracle::schema {
namespace {

// One device, unless all are requested.
void count_default(json::object& request) {
  if (text_at(request, "allocationMode") == "ExactCount" && unset(request, "count")) request["count"] = 1;
}

constexpr NamedDefaultRule kDeviceDefaults[] = {
    {"io.k8s.api.resource.v1.ExactDeviceRequest", count_default},
    {"io.k8s.api.resource.v1.DeviceSubRequest", count_default},
};

}  // namespace

std::span<const NamedDefaultRule> device_defaults() { return kDeviceDefaults; }

}  // namespace coracle::schema
