// SPDX-License-Identifier: Apache-2.0
// Rules: Nodes.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> node_defaults();
std::span<const NamedValidationRule> node_rules();
std::span<const NamedCellRule> node_cells();

void check_node_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_node_status(const json::value& now, const json::value& before, Findings& out);
void check_node_create(const json::value& object, Findings& out);

}  // namespace coracle::schema
