// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Pods and Bindings.
#include "store/kinds/pod/pod_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kPodKinds[] = {
    {.api_version = "v1",
     .resource = "pods",
     .update = check_pod_update,
     .status = check_pod_status,
     .create = check_pod_create,
     .begin = begin_pod,
     .row_conditions = pod_row_conditions},
};

}  // namespace

extern const KindFamily pod_family;
const KindFamily pod_family{
    .defaults = {pod_defaults},
    .validation = {pod_rules, placement_rules, container_rules, volume_rules, template_rules},
    .cells = {pod_cells},
    .kinds = kPodKinds,
};

}  // namespace coracle::schema
