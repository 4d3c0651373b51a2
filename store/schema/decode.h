// SPDX-License-Identifier: Apache-2.0
// Decode: converts a client's object to canonical form: fields in schema order, no nulls, zero values written or omitted as
// Kubernetes does, quantities and times in canonical notation, map keys sorted. Unknown fields are dropped with a warning. Equal
// objects have equal canonical text, so a write without changes can be detected.
//   request body ──parse_json──▶ decode ▸ apply_defaults ▸ validate ▸ store
// Driven by the tables only. Pure; thread-safe. Source: Kubernetes API conventions; sigs.k8s.io/json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

constexpr size_t kFieldWarningsMax = 100;  // of the first ones in the document; further unknown fields are dropped without one

constexpr size_t kObjectsMax = 500'000;  // in one body: a short text with many empty items must not use much memory

struct Decoded {
  json::value value;
  // unknown field "spec.foo", in the order of the document; one Warning header each for fieldValidation=Warn
  std::vector<std::string> warnings;
  std::vector<JsonPlace> places;  // of these fields
};

// A value of a root type keeps its apiVersion and kind, or gets the type's. Idempotent: decoding a canonical value changes
// nothing. Errors: bad_request, with the field, the expected and the actual type.
Result<Decoded> decode(const Type& type, json::value value);

// fieldValidation=Strict: the error for the warnings of decode() and those about duplicate keys. `found` may not be empty.
Error strict_error(const Type& type, const std::vector<std::string>& found);
// The warning for a duplicate key from parse_json(): duplicate field "spec.replicas".
std::string duplicate_warning(std::string_view path);
// Whether such a warning is about one of the unknown fields of these warnings, or about what is in one: then it is not told.
bool is_of_unknown(std::string_view duplicate, const std::vector<std::string>& unknown);

}  // namespace coracle::schema
