// SPDX-License-Identifier: Apache-2.0
// Rules: Resource claims and slices, device classes.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> device_defaults();
std::span<const NamedValidationRule> device_rules();
std::span<const NamedValidationRule> resource_slice_rules();
std::span<const NamedCellRule> device_cells();

void check_device_claim_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_device_claim_status(const json::value& now, const json::value& before, Findings& out);
void check_resource_slice_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

}  // namespace coracle::schema
