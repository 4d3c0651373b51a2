// SPDX-License-Identifier: Apache-2.0
// Rules: PodDisruptionBudgets.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> disruption_rules();

void check_budget_status(const json::value& now, const json::value& before, Findings& out);

}  // namespace coracle::schema
