// SPDX-License-Identifier: Apache-2.0
// Rules: ResourceQuotas and LimitRanges.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> limit_defaults();
std::span<const NamedValidationRule> quota_rules();
std::span<const NamedCellRule> quota_cells();

void check_quota_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_quota_status(const json::value& now, const json::value& before, Findings& out);

}  // namespace coracle::schema
