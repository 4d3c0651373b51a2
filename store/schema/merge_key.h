// SPDX-License-Identifier: Apache-2.0
// What applying a strategic merge patch (merge.cc) and making one (diff.cc) look up alike: fields and their types, where the
// schema knows them; and items of merged lists, two of which are the same one when their merge keys are equal, or their values
// where there is no key.
#pragma once

#include <string_view>

#include "runtime/base/json.h"
#include "store/schema/type.h"

namespace coracle::schema {

inline const Field* field_of(const Type* type, std::string_view name) { return type ? type->field(name) : nullptr; }

inline const Type* type_of(const Field* field) { return field && field->form == Form::object ? &field->type() : nullptr; }

inline bool same_item(const json::value& a, const json::value& b, std::string_view key) {
  if (key.empty()) return a == b;
  const json::object* left = a.if_object();
  const json::object* right = b.if_object();
  if (!left || !right) return false;
  const json::value* left_key = left->if_contains(key);
  const json::value* right_key = right->if_contains(key);
  return left_key && right_key && *left_key == *right_key;
}

// nullptr: there is none.
inline const json::value* find_item(const json::array& list, const json::value& item, std::string_view key) {
  for (const json::value& other : list) {
    if (same_item(other, item, key)) return &other;
  }
  return nullptr;
}

}  // namespace coracle::schema
