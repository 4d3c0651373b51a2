// SPDX-License-Identifier: Apache-2.0
// The effect of a DELETE: the object is removed at once, or marked and removed after finalizers and graceful termination. Pure.
//   (object, options, is it graceful?) ──plan_deletion──▶ remove | mark with this body | it is already marked
// Source: Kubernetes "Finalizers", "Pod termination"; apiserver registry/generic/registry/store, rest/delete; kubernetes
// pkg/registry/core/namespace/storage.
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
  // nothing: it is already marked so. pending: so is what terminates in its own time, and admission is not asked again.
  enum class Do { remove, mark, nothing, pending } verb;
  json::value body;  // the object to store, for mark
};

// Errors: conflict (a precondition fails), invalid (unknown propagation).
Result<DeletionPlan> plan_deletion(const Object& object, const DeleteOptions& options, const schema::KindTraits& traits,
                                   WallTime now);

// Whether a marked object can be removed: no finalizer and no grace period is left.
bool may_go(const json::value& object, const schema::KindTraits& traits);

}  // namespace coracle::registry
