// SPDX-License-Identifier: Apache-2.0
// Registers this folder. PriorityClasses.
#include "store/kinds/priority_class/priority_class_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kPriorityClassKinds[] = {
    {.api_version = "scheduling.k8s.io/v1", .resource = "priorityclasses", .update = check_priority_class_update},
};

}  // namespace

extern const KindFamily priority_class_family;
const KindFamily priority_class_family{
    .validation = {priority_class_rules},
    .kinds = kPriorityClassKinds,
};

}  // namespace coracle::schema
