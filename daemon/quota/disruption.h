// SPDX-License-Identifier: Apache-2.0
// What disruption budgets are asked and told, by the eviction that charges them and the controller that counts. Pure.
// Source: Kubernetes policy/v1 PodDisruptionBudget; component-helpers apps/poddisruptionbudget.
#pragma once

#include "runtime/base/clock.h"
#include "store/object/object_ptr.h"

namespace coracle::quota {

// Of one namespace: its selector matches; none matches nothing.
bool covers(const Object& budget, const Object& pod);
bool is_ready(const Object& pod);
const json::value* allowed_condition(const json::value& budget);  // DisruptionAllowed, null when there is none
// Brings the condition level with status.disruptionsAllowed.
void set_allowed_condition(json::value& budget, WallTime now);
// The budget cannot be counted: nothing may be disrupted until it can.
void set_sync_failed(json::value& budget, std::string_view why, WallTime now);

}  // namespace coracle::quota
