// SPDX-License-Identifier: Apache-2.0
// The pure part of the garbage collector: what owner references mean for one object.
// Source: Kubernetes garbage collection: background, foreground (finalizer foregroundDeletion) and orphan.
#pragma once

#include <string_view>
#include <vector>

#include "store/object/object.h"

namespace coracle::controller {

inline constexpr std::string_view kForeground = "foregroundDeletion";
inline constexpr std::string_view kOrphan = "orphan";

enum class OwnerState {
  solid,    // there, and staying
  waiting,  // being deleted in the foreground: it waits for its dependents to go first
  absent,   // gone, or another object has its name
};

struct OwnedPlan {
  enum class What {
    nothing,
    drop_references,  // some owners are gone, another stays
    remove,           // nobody stays
  } what = What::nothing;
  std::vector<std::string> drop;  // uids of references to take out
  std::string_view propagation;   // of the removal
};

// `owners` and `states` go together. `has_dependents`: the object owns others itself.
OwnedPlan plan_owned(const Object& object, const std::vector<OwnerReference>& owners, const std::vector<OwnerState>& states,
                     bool has_dependents);

}  // namespace coracle::controller
