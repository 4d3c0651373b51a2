// SPDX-License-Identifier: Apache-2.0
// Functions on lists of strings in rules, policies and requests. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace coracle::auth {

inline bool has(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

inline std::vector<std::string> strings_of(const json::array& list) {  // elements of other types are left out
  std::vector<std::string> out;
  for (const json::value& item : list)
    if (const json::string* text = item.if_string()) out.emplace_back(text->data(), text->size());
  return out;
}

inline std::vector<std::string> strings_at(const json::value& of, std::string_view path) {
  return strings_of(get_array(of, path));
}

}  // namespace coracle::auth
