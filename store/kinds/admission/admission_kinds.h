// SPDX-License-Identifier: Apache-2.0
// Rules: Webhook configurations and admission policies.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> webhook_rules();
std::span<const NamedCellRule> admission_cells();

}  // namespace coracle::schema
