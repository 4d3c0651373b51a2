// SPDX-License-Identifier: Apache-2.0
// The pure part of the garbage collector: what to do with one object according to its owner references. Source: Kubernetes
// garbage collection: background, foreground (finalizer foregroundDeletion) and orphan.
#pragma once

#include <string_view>
#include <vector>

#include "store/object/object.h"

namespace coracle::controller {

inline constexpr std::string_view kForeground = "foregroundDeletion";
inline constexpr std::string_view kOrphan = "orphan";

enum class OwnerState {
  present,  // exists and is not waiting for its dependents
  waiting,  // in foreground deletion: it waits for its dependents to be deleted
  absent,   // deleted, or another object has its name
};

struct OwnedPlan {
  enum class What {
    nothing,
    drop_references,  // some owners are absent, another remains
    remove,           // no owner remains
  } what = What::nothing;
  std::vector<std::string> drop;  // uids of the references to remove
  std::string_view propagation;   // of the deletion
};

// `states` has one entry per owner. `has_dependents`: the object owns other objects.
OwnedPlan plan_owned(const Object& object, const std::vector<OwnerReference>& owners, const std::vector<OwnerState>& states,
                     bool has_dependents);

}  // namespace coracle::controller
