// SPDX-License-Identifier: Apache-2.0
// Members of a JSON object by name, for code that changes objects in place: default rules, conversions. nullptr or "" if absent
// or of another type.
#pragma once

#include <string_view>

#include "runtime/base/json.h"

namespace coracle::schema {

inline json::object* object_at(json::object& object, std::string_view name) {
  json::value* found = object.if_contains(name);
  return found ? found->if_object() : nullptr;
}

inline json::array* array_at(json::object& object, std::string_view name) {
  json::value* found = object.if_contains(name);
  return found ? found->if_array() : nullptr;
}

inline std::string_view text_at(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  const json::string* text = found ? found->if_string() : nullptr;
  return text ? std::string_view(*text) : std::string_view();
}

}  // namespace coracle::schema
