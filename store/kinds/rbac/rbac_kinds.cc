// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Roles and bindings.
#include "store/kinds/rbac/rbac_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kRbacKinds[] = {
    {.api_version = "rbac.authorization.k8s.io/v1", .resource = "rolebindings", .update = check_binding_update},
    {.api_version = "rbac.authorization.k8s.io/v1", .resource = "clusterrolebindings", .update = check_binding_update},
};

}  // namespace

extern const KindFamily rbac_family;
const KindFamily rbac_family{
    .defaults = {rbac_defaults},
    .validation = {rbac_rules},
    .cells = {rbac_cells},
    .kinds = kRbacKinds,
};

}  // namespace coracle::schema
