// SPDX-License-Identifier: Apache-2.0
// The metadata that the server sets: uid, times, generation; and the fields that clients cannot change. Pure. Source: Kubernetes
// API conventions ("Metadata"); apiserver registry/rest create, update and delete.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/object/object_ptr.h"
#include "store/schema/catalog.h"

namespace coracle::registry {

json::object& make_metadata(json::value& object);  // the metadata, created if absent

// The resourceVersion in a client's body, which the present object has to have; "": none is demanded. "0" demands none.
std::string given_revision(const json::value& body);

// Checks that the body has this kind and place; fills in apiVersion, kind, namespace and name if they are absent. Errors:
// bad_request with Kubernetes' text.
Result<void> settle_place(const Kind& kind, json::value& body, const Key& key);

// Prepares a new object: drops fields that only the server sets, and sets uid, creation time and, if its kind counts generations,
// generation 1. Errors: bad_request if it has a resourceVersion.
Result<void> begin_life(json::value& object, bool counts_generations, WallTime now);

// Errors: conflict if `object` has another uid, so that it means an earlier object of this name.
Result<void> check_uid(const Kind& kind, const json::value& object, const Object& old);

// Prepares an update: server-set fields are taken from `old`. A time of deletion that `old` lacks and another grace period stay,
// for the validation to refuse. Errors: those of check_uid.
Result<void> continue_life(const Kind& kind, json::value& object, const Object& old);

// Whether anything except metadata and status differs; such a change increases the generation.
bool spec_changed(const json::value& object, const json::value& old);
void count_generation(json::value& object, const json::value& old);

bool has_finalizers(const json::value& object);
bool remove_finalizer(json::value& object, std::string_view name);  // false: it was absent
void add_finalizer(json::value& object, std::string_view name);

}  // namespace coracle::registry
