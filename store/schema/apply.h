// SPDX-License-Identifier: Apache-2.0
// Server-side apply and metadata.managedFields: who set which field. Field sets are Kubernetes' FieldsV1
// (f:<field>, k:{"name":"a"}, v:<value>, "."); lists follow list kinds and keys of the tables. Pure; thread-safe.
// Source: Kubernetes "Server-Side Apply"; structured-merge-diff (fieldpath).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

struct Manager {
  std::string name;         // fieldManager, or the User-Agent up to the first slash
  std::string subresource;  // "", "status", "scale"
  bool force = false;
  std::vector<std::string_view> beside_status;  // what of the metadata an apply to "status" may set: "labels", ...
};

// Other managers may have written in other versions of the kind (convert.h): their fields are compared there.
// `live` (null: the object does not exist) with the applied configuration. Fields that this manager applied before and now
// leaves out, and nobody else holds, go. Errors: conflict, with a FieldManagerConflict cause per field that another manager
// holds with another value (unless forced); bad_request. An apply to "status" is about the status, and what may be
// set beside it, alone; one to the object about all but it. The manager "kubectl" keeps the annotation of client-side apply in
// step, where the object has one.
Result<json::value> server_side_apply(const KindInfo& kind, const json::value& live, const json::value& configuration,
                                      const Manager& manager, WallTime now);

// What a write other than an apply sets of an object: what `sent` has otherwise than `old` (null on create). `sent` is what the
// client asked for, decoded, before defaults, admission and allocation add to it: those belong to nobody, nor does an empty
// object that is always written. Both are of the version `kind`.
json::object written_fields(const KindInfo& kind, const json::value& old, const json::value& sent);

// After any other write, `object` gets the managedFields of `old` (null on create), or its own where the body of a write to the
// object itself has them. What `object` has otherwise than `old` leaves the entries of others; `written` joins the manager's as
// Update. A body that resets them ([] or [{}]) drops them. Defaulted, but neither admitted nor allocated yet.
void track_update(const KindInfo& kind, const json::value& old, json::value& object, json::object written, const Manager& manager,
                  WallTime now);
// The same, with all that changed as written.
void track_update(const KindInfo& kind, const json::value& old, json::value& object, const Manager& manager, WallTime now);

// What was written changed nothing but the times at which managers wrote: those are the old ones again, so that it is no write.
// Source: kube-apiserver, fieldmanager, IgnoreManagedFieldsTimestampsTransformer.
void keep_times_of_unchanged(const json::value& old, json::value& object);

}  // namespace coracle::schema
