// SPDX-License-Identifier: Apache-2.0
// The conversions that there are, one file each: they change the fields of an object in place. Order, apiVersion and kind
// are convert.cc's.
#pragma once

#include "runtime/base/json.h"

namespace coracle::schema {

using Conversion = void (*)(json::object& object);

void event_to_core(json::object& event);  // events.k8s.io/v1 → v1
void event_from_core(json::object& event);

void autoscaler_to_v2(json::object& autoscaler);  // autoscaling/v1 → v2
void autoscaler_from_v2(json::object& autoscaler);

// Moves `from` to `to`, where it is there.
inline void rename(json::object& object, std::string_view from, std::string_view to) {
  auto found = object.find(from);
  if (found == object.end()) return;
  json::value value = std::move(found->value());
  object.stable_erase(found);
  object[to] = std::move(value);
}

}  // namespace coracle::schema
