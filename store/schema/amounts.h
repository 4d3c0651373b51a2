// SPDX-License-Identifier: Apache-2.0
// Amounts: named quantities ("cpu": 500m), and the requests and limits of whole pods. Pure. Source: apiserver quota/v1 resources;
// component-helpers resource (PodRequests, PodLimits).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

namespace coracle::quota {

using Amounts = std::map<std::string, Quantity, std::less<>>;

inline constexpr std::string_view kHugePages = "hugepages-";  // followed by the page size

// Whether the resource may be requested at pod level.
bool is_pod_level(std::string_view name);

Amounts amounts_of(const json::object& list);                                         // malformed quantities are left out
Amounts amounts_of(const json::object& list, const std::vector<std::string>& names);  // these only
bool same_amounts(const json::object& a, const json::object& b);                      // 1 and 1000m are the same
json::object to_json(const Amounts& amounts);
void add(Amounts& sum, const Amounts& more);
void raise(Amounts& most, const Amounts& other);  // sets each amount to the larger of both

// The sum of the containers or the largest init container, whichever is larger; for cpu, memory and hugepages, pod-level
// resources take precedence. `with_overhead` adds the overhead of the runtime class.
Amounts pod_requests(view::Pod pod, bool with_overhead);
Amounts pod_limits(view::Pod pod, bool with_overhead);

}  // namespace coracle::quota
