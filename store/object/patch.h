// SPDX-License-Identifier: Apache-2.0
// Patches that need to know nothing of the object's type: JSON patch (RFC 6902) and merge patch (RFC 7386). Strategic merge
// and server-side apply are driven from the schema.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

constexpr size_t kJsonPatchOperationsMax = 10'000;
constexpr size_t kJsonPatchCopiedBytesMax = 3u << 20;  // what "copy" may add in all: doubling grows fast
// What all operations together may look at and push aside: values that move along, members and eights of list items behind what
// is inserted or taken out. Half a second of work; ten thousand removals from the front of a list of ten thousand are below it.
constexpr size_t kJsonPatchWorkMax = 20'000'000;

// Of RFC 6902 with what Kubernetes takes beyond it: "replace" adds a member that is missing, "test" finds it null, and a list's
// index below 0 counts from the end. Applies all operations or, on an error, leaves `document` in an unspecified state. The
// result is never nested deeper than kJsonDepthMax. Errors: bad_request when the patch is malformed, or nests too deeply;
// too_large beyond the limits; invalid when an operation cannot be applied (missing path, failed test). The text names the
// operation by its index.
Result<void> apply_json_patch(json::value& document, const json::value& patch);

// null deletes a key, objects merge, everything else replaces. The result is as deep as the deeper one of the two.
void apply_merge_patch(json::value& document, const json::value& patch);

// The merge patch that turns `before` into `after`: {} when they are equal.
json::value make_merge_patch(const json::value& before, const json::value& after);

// Equal as JSON: key order does not count, 1 equals 1.0.
bool json_equal(const json::value& left, const json::value& right);

}  // namespace coracle
