// SPDX-License-Identifier: Apache-2.0
// Decode: what a client sent, made canonical. Fields in schema order, null dropped, zero values written or not as
// Kubernetes writes them, quantities and times in their one spelling, map keys sorted. What the schema does not know is
// dropped and told. Canonical text of equal objects is equal, so a write that changes nothing is seen to be none.
//   request body ──parse_json──▶ decode ▸ apply_defaults ▸ validate ▸ store
// Driven by the tables alone. Pure; thread-safe. Source: Kubernetes API conventions; sigs.k8s.io/json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

constexpr size_t kFieldWarningsMax = 100;  // beyond it unknown fields are dropped without being named

constexpr size_t kObjectsMax = 500'000;  // in one body: a short text of empty items must not become a lot of memory

struct Decoded {
  json::value value;
  std::vector<std::string> warnings;  // unknown field "spec.foo"; with fieldValidation=Warn, one Warning header each
};

// A value of a root type keeps its apiVersion and kind, or gets the type's. Idempotent: decoding a canonical value
// changes nothing. Errors: bad_request, naming the field, what it must be and what was found.
Result<Decoded> decode(const Type& type, json::value value);

// fieldValidation=Strict: the error for what decode() warned about, and for keys that parse_json found twice. `unknown` and
// `duplicates` may not both be empty.
Error strict_error(const Type& type, const std::vector<std::string>& unknown, const std::vector<std::string>& duplicates);
// With fieldValidation=Warn, duplicates are warnings too: duplicate field "spec.replicas".
std::string duplicate_warning(std::string_view path);

}  // namespace coracle::schema
