// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Services, Endpoints and EndpointSlices.
#include "store/kinds/service/service_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kServiceKinds[] = {
    {.api_version = "v1", .resource = "services", .update = check_service_update, .status = check_service_status},
    {.api_version = "discovery.k8s.io/v1", .resource = "endpointslices", .update = check_slice_update},
};

}  // namespace

extern const KindFamily service_family;
const KindFamily service_family{
    .defaults = {service_defaults},
    .validation = {service_rules, endpoints_rules},
    .cells = {service_cells},
    .kinds = kServiceKinds,
};

}  // namespace coracle::schema
