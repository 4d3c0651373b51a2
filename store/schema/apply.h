// SPDX-License-Identifier: Apache-2.0
// Server-side apply and metadata.managedFields: which manager has set which field. Field sets are Kubernetes' FieldsV1
// (f:<field>, k:{"name":"a"}, v:<value>, "."); lists use the list kinds and keys of the tables. Pure; thread-safe. Source:
// Kubernetes "Server-Side Apply"; structured-merge-diff (fieldpath).
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
  std::vector<std::string_view> beside_status;  // metadata that an apply to "status" may set: "labels", ...
  bool begins_record = false;                   // an update records its fields although the object has no managedFields
};

// Merges `configuration` into `live` (null: the object does not exist). Fields that this manager applied before and now omits are
// removed, unless another manager owns them. If nobody owns anything, "before-first-apply" owns what is there. Other managers may
// have written other versions of the kind (convert.h): their fields are compared in their version. An apply to "status" only
// affects the status and `beside_status`; an apply to the object affects everything else. For the manager "kubectl", the
// last-applied annotation is updated if the object has it. Errors: conflict, with a FieldManagerConflict cause per field that
// another manager owns with another value (unless `force` is set); bad_request. The manager's entry gets the time of the apply if
// the object is changed, and keeps the old one, or none, if it is not; the caller restores it if nothing is after decoding.
// `memory`: of the result.
Result<json::value> server_side_apply(const KindInfo& kind, const json::value& live, const json::value& configuration,
                                      const Manager& manager, WallTime now, json::storage_ptr memory = {});

// The error for a configuration that is not of its type. Source: apimachinery managedfields, structuredmerge.go.
Error untyped_patch(const KindInfo& kind, const json::value& configuration, std::string_view why);

// The fields that a write other than an apply has set: those in which `sent` differs from `old` (null on create). `sent` is the
// client's object after decoding, before defaults, admission and allocation: what those add has no owner, and neither has an
// empty object that is always written. Both have the version `kind`.
json::object written_fields(const KindInfo& kind, const json::value& old, const json::value& sent);

// Updates managedFields after a write other than an apply. `object` gets the entries of `old` (null on create), or its own if the
// body of a write to the main resource has them. Fields that differ from `old` are removed from the entries of other managers;
// `written` is added to the manager's Update entry. A body that resets managedFields ([] or [{}]) drops all entries. If `old` has
// none, none is made: a record begins with the object, the first apply, or one that `begins_record`. `object` is defaulted, but
// not yet admitted or allocated. Source: apimachinery managedfields, skipnonapplied.go.
void track_update(const KindInfo& kind, const json::value& old, json::value& object, json::object written, const Manager& manager,
                  WallTime now);
// The same, with all changed fields as `written`.
void track_update(const KindInfo& kind, const json::value& old, json::value& object, const Manager& manager, WallTime now);

// If a write changes nothing but times in managedFields, restores the old times, so that the write has no effect. Source:
// kube-apiserver, fieldmanager, IgnoreManagedFieldsTimestampsTransformer.
void keep_times_of_unchanged(const json::value& old, json::value& object);

}  // namespace coracle::schema
