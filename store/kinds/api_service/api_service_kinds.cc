// SPDX-License-Identifier: Apache-2.0
// Registers this folder. APIServices.
#include "store/kinds/api_service/api_service_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kApiServiceKinds[] = {
    {.api_version = "apiregistration.k8s.io/v1", .resource = "apiservices", .status = check_api_service_status},
};

}  // namespace

extern const KindFamily api_service_family;
const KindFamily api_service_family{
    .validation = {api_service_rules},
    .cells = {api_service_cells},
    .kinds = kApiServiceKinds,
};

}  // namespace coracle::schema
