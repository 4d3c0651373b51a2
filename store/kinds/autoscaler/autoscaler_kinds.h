// SPDX-License-Identifier: Apache-2.0
// Rules: HorizontalPodAutoscalers, stored as autoscaling/v2.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> autoscaler_defaults();
std::span<const NamedValidationRule> autoscaler_rules();
std::span<const NamedCellRule> autoscaler_cells();

void check_autoscaler_status(const json::value& now, const json::value& before, Findings& out);
void autoscaler_to_v2(json::object& object);    // from autoscaling/v1
void autoscaler_from_v2(json::object& object);  // to autoscaling/v1

}  // namespace coracle::schema
