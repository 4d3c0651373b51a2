// SPDX-License-Identifier: Apache-2.0
// Validation: everything wrong with an object at once, as causes that name the field, in Kubernetes' words. What the tables
// know (required fields, closed sets) is checked by them; names, labels and owners once for all kinds (validate/metadata);
// rules of a kind in one file each (validate/pod.cc, ...). Objects are canonical and defaulted. Pure; thread-safe.
//   std::vector<Cause> causes = validate_create(info, object);
//   if (!causes.empty()) return invalid(info.kind, name, std::move(causes));   // store/object/status.h
// Source: Kubernetes 1.36 API reference; "Object Names and IDs"; "Labels and Selectors".
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

constexpr size_t kCausesMax = 200;

// `kind` is as it was asked for, objects are as it is stored (KindInfo::stored): causes name the fields of that.
std::vector<Cause> validate_create(const KindInfo& kind, const json::value& object);
// What may not change has not changed, and `object` is valid. `subresource`: "" or "status" (only metadata and status are
// looked at), "ephemeralcontainers".
std::vector<Cause> validate_update(const KindInfo& kind, const json::value& object, const json::value& old,
                                   std::string_view subresource = {});

}  // namespace coracle::schema
