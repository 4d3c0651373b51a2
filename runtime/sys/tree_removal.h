// SPDX-License-Identifier: Apache-2.0
// Removing a directory tree that a container has shaped: however deep and wide it is, it takes the memory of a few directories,
// no link is followed, no mount is crossed, and nothing is moved, which limits by projects could forbid. Source: openat2(2),
// unlinkat(2), readdir(3).
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// As remove_tree in file.h, which cannot be stopped. Blocks for as long as that takes: seconds for a hundred thousand entries.
// Errors: cancelled when stop is requested, and the rest is there; conflict when somebody else moves the tree about.
Result<void> remove_tree(const Fd& dir, const std::string& name, std::stop_token stop);
// The same, up to so many entries. Returns whether all is gone.
Result<bool> remove_some(const Fd& dir, const std::string& name, uint64_t entries_max);

}  // namespace coracle::sys
