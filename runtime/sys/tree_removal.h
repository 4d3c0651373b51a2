// SPDX-License-Identifier: Apache-2.0
// Removes a directory tree that a container controls. Whatever its depth and width, it needs memory for a few directories only.
// It follows no link, crosses no mount, and moves nothing, because project quotas could forbid that. Source: openat2(2),
// unlinkat(2), readdir(3).
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// As remove_tree in file.h, but can be stopped. Blocks until done: seconds for a hundred thousand entries. Errors: cancelled if a
// stop is requested, with the rest left in place; conflict if somebody moves parts of the tree meanwhile.
Result<void> remove_tree(const Fd& dir, const std::string& name, std::stop_token stop);
// The same, but removes at most `entries_max` entries. Returns true if everything is gone.
Result<bool> remove_some(const Fd& dir, const std::string& name, uint64_t entries_max);

}  // namespace coracle::sys
