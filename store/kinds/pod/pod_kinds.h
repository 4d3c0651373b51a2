// SPDX-License-Identifier: Apache-2.0
// Rules: Pods and Bindings.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> pod_defaults();
std::span<const NamedValidationRule> pod_rules();
std::span<const NamedValidationRule> placement_rules();
std::span<const NamedValidationRule> container_rules();
std::span<const NamedValidationRule> volume_rules();
std::span<const NamedValidationRule> template_rules();
std::span<const NamedCellRule> pod_cells();

void check_pod_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_pod_status(const json::value& now, const json::value& before, Findings& out);
void check_pod_create(const json::value& object, Findings& out);
void begin_pod(json::value& object);
json::array pod_row_conditions(const json::value& object);

}  // namespace coracle::schema
