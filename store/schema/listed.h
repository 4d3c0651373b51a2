// SPDX-License-Identifier: Apache-2.0
// Comma-separated lists in the tables: "get,list,watch". Searches without copying.
#pragma once

#include <algorithm>
#include <string_view>

namespace coracle::schema {

inline bool is_listed(std::string_view commas, std::string_view item) {
  while (!commas.empty()) {
    size_t end = std::min(commas.find(','), commas.size());
    if (commas.substr(0, end) == item) return true;
    commas.remove_prefix(std::min(end + 1, commas.size()));
  }
  return false;
}

}  // namespace coracle::schema
