// SPDX-License-Identifier: Apache-2.0
// Registers this folder. CustomResourceDefinitions.
#include "store/kinds/custom_resource/custom_resource_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kCustomResourceKinds[] = {
    {.api_version = "apiextensions.k8s.io/v1",
     .resource = "customresourcedefinitions",
     .update = check_definition_update,
     .status = check_definition_status,
     .create = check_definition_create},
};

}  // namespace

extern const KindFamily custom_resource_family;
const KindFamily custom_resource_family{
    .defaults = {definition_defaults},
    .validation = {custom_resource_rules},
    .kinds = kCustomResourceKinds,
};

}  // namespace coracle::schema
