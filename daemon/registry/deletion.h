// SPDX-License-Identifier: Apache-2.0
// What a DELETE comes to: gone at once, or marked and left to those who have to finish first. Pure.
//   (object, options, is it graceful?) ──plan_deletion──▶ remove | mark with this body | it is marked so already
// Source: Kubernetes "Finalizers", "Pod termination"; apiserver registry/generic/registry/store, rest/delete.
#pragma once

#include <optional>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/client/client.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/schema/catalog.h"

namespace coracle::registry {

struct DeletionPlan {
  enum class Do { remove, mark, nothing } verb;
  json::value body;  // to store, for mark
};

// Errors: conflict (a precondition fails), invalid (unknown propagation).
Result<DeletionPlan> plan_deletion(const Object& object, const DeleteOptions& options, const schema::KindFacts& facts,
                                   WallTime now);

// Whether an object that was marked has nothing left that holds it.
bool may_go(const json::value& object, const schema::KindFacts& facts);

}  // namespace coracle::registry
