// SPDX-License-Identifier: Apache-2.0
// PodDisruptionBudgets, for the eviction that charges them and the controller that computes them. Pure. Source: Kubernetes
// policy/v1 PodDisruptionBudget; component-helpers apps/poddisruptionbudget.
#pragma once

#include <chrono>

#include "runtime/base/clock.h"
#include "store/object/object_ptr.h"

namespace coracle::quota {

// A pod in disruptedPods counts as disrupted until it is being deleted, or for this long.
constexpr std::chrono::minutes kGoesWithin{2};

// Both must be in the same namespace. Whether the selector matches; without a selector, nothing matches.
bool covers(const Object& budget, const Object& pod);
const json::value* allowed_condition(const json::value& budget);  // DisruptionAllowed; null if absent
// Updates the condition according to status.disruptionsAllowed.
void set_allowed_condition(json::value& budget, WallTime now);
// Marks a budget that cannot be computed: no disruption is allowed until it can.
void set_sync_failed(json::value& budget, std::string_view why, WallTime now);

}  // namespace coracle::quota
