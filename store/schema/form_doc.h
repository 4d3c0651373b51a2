// SPDX-License-Identifier: Apache-2.0
// Descriptions of the types that are not objects but have a schema of their own in Kubernetes' documents, such as Time and
// Quantity: for OpenAPI and explain.
#pragma once

#include <string_view>

#include "store/schema/type.h"

namespace coracle::schema {

// "" for the other forms.
constexpr std::string_view form_doc(Form form) {
  switch (form) {
    case Form::time:
    case Form::micro_time: return "A moment, written as RFC 3339 in UTC.";
    case Form::duration: return "A span of time, as Go writes it: 1h2m3.5s.";
    case Form::fields: return "A set of fields, as a tree of names: f:<field>, k:<keys of a list item>, v:<value>.";
    case Form::quantity: return "An amount with an optional suffix: 100m, 1.5, 2k, 1Gi.";
    case Form::int_or_string: return "A number, or text: a percentage or the name of a port.";
    case Form::any: return "Any object.";
    default: return {};
  }
}

}  // namespace coracle::schema
