// SPDX-License-Identifier: Apache-2.0
// What a PUT may do, kind by kind: make what is not there; write without saying over which version; change metadata together with
// the status. Pure.
// Source: each kind's AllowCreateOnUpdate, AllowUnconditionalUpdate and status strategy in kubernetes/pkg/registry.
#pragma once

#include <string_view>

#include "store/object/kind.h"

namespace coracle::registry {

bool creates_on_update(const Kind& kind);
bool updates_unconditionally(const Kind& kind);
// A deletion that says nothing of dependents leaves them alone: for the kinds that had no garbage collector once.
bool orphans_by_default(const Kind& kind);

// Whether a write of the status takes "labels", "annotations", "finalizers" or "ownerReferences" of the body as well. Most
// kinds do.
bool status_takes(const Kind& kind, std::string_view field);

}  // namespace coracle::registry
