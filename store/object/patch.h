// SPDX-License-Identifier: Apache-2.0
// Patches that are independent of the object's type: JSON patch (RFC 6902) and merge patch (RFC 7386). The schema implements
// strategic merge and server-side apply.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

constexpr size_t kJsonPatchOperationsMax = 10'000;
constexpr size_t kJsonPatchCopiedBytesMax = 3u << 20;  // total that "copy" may add: repeated doubling grows exponentially
// Limit for the work of all operations: values that are moved, members, and an eighth for each list item that an insertion or
// removal shifts. It is half a second of work; ten thousand removals from the front of a list of ten thousand are within it.
constexpr size_t kJsonPatchWorkMax = 20'000'000;

// RFC 6902 as Kubernetes takes it: "replace" adds a missing member, "test" reads it as null, a negative list index counts from
// the end, and only "replace" and "test" may name the whole document. Applies all operations; after an error `document` is in an
// unspecified state. The result is never nested deeper than kJsonDepthMax. Errors: bad_request for a malformed or too deeply
// nested patch; too_large above the limits; invalid if an operation cannot be applied (missing path, failed test). The text
// contains the index of the operation.
Result<void> apply_json_patch(json::value& document, const json::value& patch);

// null deletes a key, objects are merged, everything else replaces. The result is at most as deep as the deeper input.
void apply_merge_patch(json::value& document, const json::value& patch);

// The merge patch from `before` to `after`: {} if they are equal.
json::value make_merge_patch(const json::value& before, const json::value& after);

// Equality of JSON: the order of keys is ignored, 1 equals 1.0.
bool json_equal(const json::value& left, const json::value& right);

}  // namespace coracle
