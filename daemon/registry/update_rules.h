// SPDX-License-Identifier: Apache-2.0
// What a PUT may do, kind by kind: make what is not there; write without saying over which version. Pure.
// Source: each kind's AllowCreateOnUpdate and AllowUnconditionalUpdate in kubernetes/pkg/registry.
#pragma once

#include "store/object/kind.h"

namespace coracle::registry {

bool creates_on_update(const Kind& kind);
bool updates_unconditionally(const Kind& kind);
// A deletion that says nothing of dependents leaves them alone: for the kinds that had no garbage collector once.
bool orphans_by_default(const Kind& kind);

}  // namespace coracle::registry
