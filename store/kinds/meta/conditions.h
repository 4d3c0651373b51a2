// SPDX-License-Identifier: Apache-2.0
// Conditions: the list in status.conditions, which most kinds have. Source: Kubernetes API conventions, "Typical status
// properties".
#pragma once

#include <algorithm>
#include <string_view>

#include "store/schema/views.h"

namespace coracle {

// In the status of an object of any kind: these fields are the same in all kinds.
inline view::Range<view::Condition> conditions_of(const json::value& object) {
  return view::Service(object).status().conditions();
}
void conditions_of(const json::value&& object) = delete;  // it would be gone before they are read

// Null: there is none of this type.
inline const json::value* find_condition(const json::array& conditions, std::string_view type) {
  auto found = std::find_if(conditions.begin(), conditions.end(),
                            [&](const json::value& condition) { return view::Condition(condition).type() == type; });
  return found == conditions.end() ? nullptr : &*found;
}

// In `object`'s status.
inline const json::value* find_condition(const json::value& object, std::string_view type) {
  return find_condition(conditions_of(object).raw(), type);
}

// The condition of this type in the list of an object that is being changed. If there is none, one is appended that has only its
// type.
inline json::object& make_condition(json::array& conditions, std::string_view type) {
  for (json::value& one : conditions)
    if (one.is_object() && view::Condition(one).type() == type) return one.get_object();
  return conditions.emplace_back(json::object{{"type", type}}).get_object();
}

inline bool has_true_condition(const json::value& object, std::string_view type) {
  return view::Condition(find_condition(object, type)).status() == "True";
}

}  // namespace coracle
