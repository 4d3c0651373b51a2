// SPDX-License-Identifier: Apache-2.0
// Rules: FlowSchemas and PriorityLevelConfigurations.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> flow_defaults();
std::span<const NamedValidationRule> flow_rules();
std::span<const NamedCellRule> flow_cells();

void check_flow_status(const json::value& now, const json::value& before, Findings& out);

}  // namespace coracle::schema
