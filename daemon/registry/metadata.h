// SPDX-License-Identifier: Apache-2.0
// What the server alone says in an object's metadata: uid, times, generation; and what a client may not take back. Pure.
// Source: Kubernetes API conventions ("Metadata"); apiserver registry/rest create, update and delete.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/object/object_ptr.h"
#include "store/schema/catalog.h"

namespace coracle::registry {

json::object& metadata_of(json::value& object);  // made when absent

// The body is of this kind and for this place: fills in apiVersion, kind, namespace and name where they are absent.
// Errors: bad_request in Kubernetes' words.
Result<void> settle_place(const Kind& kind, json::value& body, const Key& key);

// A new object: drops what only the server sets, gives it a uid, a creation time and, where its kind counts them,
// generation 1. Errors: internal, as a storage's, when it names a resourceVersion.
Result<void> begin_life(json::value& object, bool counts_generations, WallTime now);

// Errors: conflict when `object` names another uid: it means one that had this name before.
Result<void> check_uid(const Kind& kind, const json::value& object, const Object& old);

// An update: what the server says is kept from `old`. Errors: those of check_uid; invalid when it adds a finalizer to an object
// that is being deleted.
Result<void> continue_life(const Kind& kind, json::value& object, const Object& old);

// Whether anything but metadata and status differs: what a generation counts.
bool spec_changed(const json::value& object, const json::value& old);
void count_generation(json::value& object, const json::value& old);

bool has_finalizers(const json::value& object);
bool remove_finalizer(json::value& object, std::string_view name);  // false: it was not there
void add_finalizer(json::value& object, std::string_view name);

}  // namespace coracle::registry
