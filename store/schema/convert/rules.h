// SPDX-License-Identifier: Apache-2.0
// The conversions of each kind: functions that change the fields of an object in place. convert.cc sets the order, apiVersion and
// kind.
#pragma once

#include "runtime/base/json.h"

namespace coracle::schema {

using Conversion = void (*)(json::object& object);

void event_to_core(json::object& event);  // events.k8s.io/v1 → v1
void event_from_core(json::object& event);

void autoscaler_to_v2(json::object& autoscaler);  // autoscaling/v1 → v2
void autoscaler_from_v2(json::object& autoscaler);

// Moves member `from` to `to`, if it exists.
inline void rename(json::object& object, std::string_view from, std::string_view to) {
  auto found = object.find(from);
  if (found == object.end()) return;
  json::value value = std::move(found->value());
  object.stable_erase(found);
  object[to] = std::move(value);
}

}  // namespace coracle::schema
