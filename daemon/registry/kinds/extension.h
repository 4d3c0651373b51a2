// SPDX-License-Identifier: Apache-2.0
// See extension.cc and definition.cc.
#pragma once

#include <span>
#include <vector>

#include "daemon/registry/strategy.h"

namespace coracle::registry {

std::span<const Strategy> extension_strategies();

// Of CustomResourceDefinitions: which of the names that are asked for are free, in the conditions' words; the stored version.
Result<void> accept_names(json::value& object, const Allocation& allocation);
Result<void> accept_changed_names(json::value& object, const Object& old, const Allocation& allocation);

}  // namespace coracle::registry
