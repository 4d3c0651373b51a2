// SPDX-License-Identifier: Apache-2.0
// Lists as the tables write them: "get,list,watch". Looked through where they lie.
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
