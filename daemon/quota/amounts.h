// SPDX-License-Identifier: Apache-2.0
// Amounts: named quantities ("cpu": 500m), and what a whole pod requests and is limited to. Pure.
// Source: apiserver quota/v1 resources; component-helpers resource (PodRequests, PodLimits).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "store/object/quantity.h"

namespace coracle::quota {

using Amounts = std::map<std::string, Quantity, std::less<>>;

inline constexpr std::string_view kHugePages = "hugepages-";  // then the pages' size

// Resources that a pod may ask for as a whole.
bool is_pod_level(std::string_view name);

Amounts amounts_of(const json::object& list);  // what is no quantity is left out
json::object to_json(const Amounts& amounts);
void add(Amounts& sum, const Amounts& more);
void raise(Amounts& most, const Amounts& other);  // to the larger of both, name by name

// Of all containers together: side by side, or one init container after the other, whichever is more; what the pod itself
// says of cpu, memory and hugepages counts instead. `with_overhead`: and what its runtime class adds.
Amounts pod_requests(const json::value& pod, bool with_overhead);
Amounts pod_limits(const json::value& pod, bool with_overhead);

}  // namespace coracle::quota
