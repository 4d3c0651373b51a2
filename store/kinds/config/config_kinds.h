// SPDX-License-Identifier: Apache-2.0
// Rules: ConfigMaps, Secrets and ServiceAccounts.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> secret_defaults();
std::span<const NamedValidationRule> config_rules();

void check_config_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

}  // namespace coracle::schema
