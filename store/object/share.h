// SPDX-License-Identifier: Apache-2.0
// A share of a number: what Kubernetes calls IntOrString, "25%" or 3, of so many. Source: apimachinery util/intstr (semantics).
#pragma once

#include "runtime/base/json.h"

namespace coracle {

// An integer or a percentage of `total`. Absent, or neither: `otherwise`.
int64_t scaled(const json::value* int_or_percent, int64_t total, bool round_up, int64_t otherwise = 0);

}  // namespace coracle
