// SPDX-License-Identifier: Apache-2.0
// Rules: CustomResourceDefinitions.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> definition_defaults();
std::span<const NamedValidationRule> custom_resource_rules();

void check_definition_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_definition_status(const json::value& now, const json::value& before, Findings& out);
void check_definition_create(const json::value& object, Findings& out);

}  // namespace coracle::schema
