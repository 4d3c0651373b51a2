// SPDX-License-Identifier: Apache-2.0
// Conditions: the list in status.conditions, which most kinds have. Source: Kubernetes API conventions, "Typical status
// properties".
#pragma once

#include <algorithm>
#include <string_view>

#include "runtime/base/json.h"

namespace coracle {

// Null: there is none of this type.
inline const json::value* find_condition(const json::array& conditions, std::string_view type) {
  auto found = std::find_if(conditions.begin(), conditions.end(),
                            [&](const json::value& condition) { return get_string(condition, "type") == type; });
  return found == conditions.end() ? nullptr : &*found;
}

// In `object`'s status.
inline const json::value* find_condition(const json::value& object, std::string_view type) {
  return find_condition(get_array(object, "status.conditions"), type);
}

inline bool has_true_condition(const json::value& object, std::string_view type) {
  const json::value* found = find_condition(object, type);
  return found && get_string(*found, "status") == "True";
}

}  // namespace coracle
