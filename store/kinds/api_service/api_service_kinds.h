// SPDX-License-Identifier: Apache-2.0
// Rules: APIServices.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> api_service_rules();
std::span<const NamedCellRule> api_service_cells();

void check_api_service_status(const json::value& now, const json::value& before, Findings& out);

}  // namespace coracle::schema
