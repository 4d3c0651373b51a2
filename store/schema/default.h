// SPDX-License-Identifier: Apache-2.0
// Defaults: the values that Kubernetes sets for omitted fields. Constant defaults are in the schema text (`default=`); those that
// depend on other fields are in store/kinds, in the kind's folder. Works on canonical values (decode.h), after every create,
// update and patch; idempotent. Pure; thread-safe. Source: Kubernetes 1.36 API reference, field documentation.
#pragma once

#include <string_view>

#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

// `object` is canonical and remains so.
void apply_defaults(const Type& type, json::value& object);
inline void apply_defaults(const KindInfo& kind, json::value& object) { apply_defaults(kind.type(), object); }
// Only the constant defaults, for bodies that are not kinds (TokenRequest, Eviction, Scale).
void apply_constant_defaults(const Type& type, json::value& object);

// Initialises a new object, before defaults. Kinds with a status subresource get an empty status (a Node keeps its own), a pod
// Pending with its QoS class, a namespace Active with its finalizer.
void begin_life(const KindInfo& kind, json::value& object);
// "Guaranteed", "Burstable" or "BestEffort", from the pod-level requests and limits, otherwise from its containers'. Source:
// Kubernetes, "Pod Quality of Service Classes"; KEP-2837.
std::string_view qos_class(const json::value& pod);

}  // namespace coracle::schema
