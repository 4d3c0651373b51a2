// SPDX-License-Identifier: Apache-2.0
// Validation: all errors of an object at once, as causes with field and Kubernetes' text. The tables define required fields and
// closed sets. Names, labels and owners are checked for all kinds (validate/metadata.cc), and the rules of a kind are in its
// folder (store/kinds/pod/pod_validation.cc, ...). Objects must be canonical and defaulted. Pure; thread-safe.
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

// `kind` is the requested version; objects are in the stored version (KindInfo::stored), and causes name its fields.
std::vector<Cause> validate_create(const KindInfo& kind, const json::value& object);
// Checks that immutable fields are unchanged and that `object` is valid, except for what was invalid in `old` as well: rules get
// stricter, and objects stay. Source: Kubernetes "Validation ratcheting". `subresource`: "" or "status" (only metadata and status
// are checked), "ephemeralcontainers".
std::vector<Cause> validate_update(const KindInfo& kind, const json::value& object, const json::value& old,
                                   std::string_view subresource = {});

}  // namespace coracle::schema
