// SPDX-License-Identifier: Apache-2.0
// Rules: RuntimeClasses.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> runtime_class_rules();

void check_runtime_class_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

}  // namespace coracle::schema
