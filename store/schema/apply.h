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
// set beside it, alone; one to the object about all but it.
Result<json::value> server_side_apply(const KindInfo& kind, const json::value& live, const json::value& configuration,
                                      const Manager& manager, WallTime now);

// After any other write: `object` gets the managedFields of `old` (null on create), or its own where the body of a write to the
// object itself has them, with what changed moved to `manager` as Update. A body that resets them ([] or [{}]) drops them.
void track_update(const KindInfo& kind, const json::value& old, json::value& object, const Manager& manager, WallTime now);

}  // namespace coracle::schema
