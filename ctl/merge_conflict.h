// SPDX-License-Identifier: Apache-2.0
// Whether two patches of an object contradict each other. Pure. Source: apimachinery util/strategicpatch
// MergingMapsHaveConflicts.
#pragma once

#include "runtime/base/json.h"
#include "store/schema/type.h"

namespace coracle::ctl {

// True if both strategic merge patches change the same field to different values. Items of lists that merge are compared by their
// merge keys. `type` is null for fields that no type knows.
bool patches_conflict(const schema::Type* type, const json::value& left, const json::value& right);

}  // namespace coracle::ctl
