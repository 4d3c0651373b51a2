// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Resource claims and slices, device classes.
#include "store/kinds/device/device_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kDeviceKinds[] = {
    {.api_version = "resource.k8s.io/v1",
     .resource = "resourceclaims",
     .update = check_device_claim_update,
     .status = check_device_claim_status},
    {.api_version = "resource.k8s.io/v1", .resource = "resourceclaimtemplates", .update = check_device_claim_update},
    {.api_version = "resource.k8s.io/v1", .resource = "resourceslices", .update = check_resource_slice_update},
};

}  // namespace

extern const KindFamily device_family;
const KindFamily device_family{
    .defaults = {device_defaults},
    .validation = {device_rules, resource_slice_rules},
    .cells = {device_cells},
    .kinds = kDeviceKinds,
};

}  // namespace coracle::schema
