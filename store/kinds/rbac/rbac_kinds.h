// SPDX-License-Identifier: Apache-2.0
// Rules: Roles and bindings.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> rbac_defaults();
std::span<const NamedValidationRule> rbac_rules();
std::span<const NamedCellRule> rbac_cells();

void check_binding_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

}  // namespace coracle::schema
