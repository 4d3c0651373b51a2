// SPDX-License-Identifier: Apache-2.0
// When two items of a merged list are the same one: equal merge keys, or equal values where there is no key.
#pragma once

#include <string_view>

#include "runtime/base/json.h"

namespace coracle::schema {

inline bool same_item(const json::value& a, const json::value& b, std::string_view key) {
  if (key.empty()) return a == b;
  const json::object* left = a.if_object();
  const json::object* right = b.if_object();
  if (!left || !right) return false;
  const json::value* left_key = left->if_contains(key);
  const json::value* right_key = right->if_contains(key);
  return left_key && right_key && *left_key == *right_key;
}

}  // namespace coracle::schema
