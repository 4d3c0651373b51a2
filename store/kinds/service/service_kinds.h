// SPDX-License-Identifier: Apache-2.0
// Rules: Services, Endpoints and EndpointSlices.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> service_defaults();
std::span<const NamedValidationRule> service_rules();
std::span<const NamedValidationRule> endpoints_rules();
std::span<const NamedCellRule> service_cells();

void check_service_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_service_status(const json::value& now, const json::value& before, Findings& out);
void check_slice_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

}  // namespace coracle::schema
