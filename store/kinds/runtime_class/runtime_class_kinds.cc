// SPDX-License-Identifier: Apache-2.0
// Registers this folder. RuntimeClasses.
#include "store/kinds/runtime_class/runtime_class_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kRuntimeClassKinds[] = {
    {.api_version = "node.k8s.io/v1", .resource = "runtimeclasses", .update = check_runtime_class_update},
};

}  // namespace

extern const KindFamily runtime_class_family;
const KindFamily runtime_class_family{
    .validation = {runtime_class_rules},
    .kinds = kRuntimeClassKinds,
};

}  // namespace coracle::schema
