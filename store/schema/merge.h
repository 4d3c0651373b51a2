// SPDX-License-Identifier: Apache-2.0
// Strategic merge patch: uses the types, so that for example a list of containers merges by name instead of being replaced. Merge
// keys and strategies come from the tables. Unknown fields merge as in RFC 7386.
// Directives: $patch (replace, delete), $retainKeys, $setElementOrder/<list>, $deleteFromPrimitiveList/<list>.
// Pure; thread-safe. Source: Kubernetes "Update API Objects in Place Using kubectl patch", strategic-merge-patch.md.
#pragma once

#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

// Applies `patch` to `original`. Errors: bad_request for a malformed patch: an unknown directive, an item without its merge key,
// an order of no list or one that contradicts the patch's items. (For some of these Kubernetes answers 500 and quotes the patch.)
Result<json::value> strategic_merge(const Type& type, json::value original, const json::value& patch);
Result<json::value> strategic_merge(const KindInfo& kind, json::value original, const json::value& patch);

// The patch of `kubectl apply`: from `current` (live) to `modified` (the user's file), with deletions only of what `last_applied`
// (the annotation; null if absent) contains. Empty object: no change.
json::value strategic_diff3(const KindInfo& kind, const json::value& last_applied, const json::value& modified,
                            const json::value& current);
// The patch from `original` to `modified`, with deletions.
json::value strategic_diff(const KindInfo& kind, const json::value& original, const json::value& modified);

}  // namespace coracle::schema
