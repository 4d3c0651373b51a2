// SPDX-License-Identifier: Apache-2.0
// Taint eviction, the pure part. See taint_eviction.cc.
#pragma once

#include <chrono>
#include <optional>

#include "store/object/object_ptr.h"

namespace coracle::controller {

// How long a pod may stay on its node, from the time when its NoExecute taints were first seen. Zero: not at all. nullopt:
// forever.
std::optional<std::chrono::seconds> time_until_evicted(const Object& pod, const Object& node);

}  // namespace coracle::controller
