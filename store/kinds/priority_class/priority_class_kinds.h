// SPDX-License-Identifier: Apache-2.0
// Rules: PriorityClasses.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> priority_class_rules();

void check_priority_class_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

}  // namespace coracle::schema
