// SPDX-License-Identifier: Apache-2.0
// Conversion: a function that changes the fields of an object in place from one version of its kind to another. convert.cc sets
// the order of the fields, apiVersion and kind.
#pragma once

#include "runtime/base/json.h"

namespace coracle::schema {

using Conversion = void (*)(json::object& object);

// Moves member `from` to `to`, if it exists.
inline void rename(json::object& object, std::string_view from, std::string_view to) {
  auto found = object.find(from);
  if (found == object.end()) return;
  json::value value = std::move(found->value());
  object.stable_erase(found);
  object[to] = std::move(value);
}

}  // namespace coracle::schema
