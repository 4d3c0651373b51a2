// SPDX-License-Identifier: Apache-2.0
// Defaults: what Kubernetes fills in when a user left it out. Constant defaults stand in the schema text
// (`default=`); those that depend on other fields are in defaults/, one file per kind. Runs on canonical values (decode.h),
// after every create, update and patch; idempotent. Pure; thread-safe.
// Source: Kubernetes 1.36 API reference, field documentation.
#pragma once

#include <string_view>

#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

// `object` is canonical and stays so.
void apply_defaults(const Type& type, json::value& object);
inline void apply_defaults(const KindInfo& kind, json::value& object) { apply_defaults(kind.type(), object); }
// The constant defaults alone, for bodies that are no kind of their own (TokenRequest, Eviction, Scale).
void apply_constant_defaults(const Type& type, json::value& object);

// On create, before defaults: what the server decides. Kinds with a status subresource begin with an empty status (a Node
// keeps its own), a pod as Pending with its QoS class, a namespace as Active with its finalizer.
void begin_life(const KindInfo& kind, json::value& object);
// "Guaranteed", "Burstable" or "BestEffort", from the requests and limits of the pod as a whole, else of its containers.
// Source: Kubernetes, "Pod Quality of Service Classes"; KEP-2837.
std::string_view qos_class(const json::value& pod);

}  // namespace coracle::schema
