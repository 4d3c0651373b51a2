// SPDX-License-Identifier: Apache-2.0
// IntOrString values such as "25%" or 3. Source: apimachinery util/intstr (semantics).
#pragma once

#include "runtime/base/json.h"

namespace coracle {

// The integer, or the percentage of `total`. Absent or invalid: `otherwise`.
int64_t scaled(const json::value* int_or_percent, int64_t total, bool round_up, int64_t otherwise = 0);

}  // namespace coracle
