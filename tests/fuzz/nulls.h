// SPDX-License-Identifier: Apache-2.0
// Values that patches cannot express.
#pragma once

#include "runtime/base/json.h"

namespace coracle {

// Whether the value contains a null anywhere; or, if directives_count, a member that is a directive of a strategic merge
// ("$patch").
inline bool holds_null(const json::value& value, bool directives_count = false) {
  if (value.is_null()) return true;
  if (const auto* object = value.if_object())
    for (const auto& [key, child] : *object)
      if ((directives_count && key.starts_with("$")) || holds_null(child, directives_count)) return true;
  if (const auto* array = value.if_array())
    for (const auto& child : *array)
      if (holds_null(child, directives_count)) return true;
  return false;
}

}  // namespace coracle
