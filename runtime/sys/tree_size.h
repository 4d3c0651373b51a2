// SPDX-License-Identifier: Apache-2.0
// How much of its disk a directory tree takes, as du(1) counts: blocks, not lengths. The tree may be a container's: it is walked
// as tree_walk.h says. Source: stat(2).
#pragma once

#include <cstdint>
#include <stop_token>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle::sys {

struct TreeSize {
  Bytes bytes;           // of all files and directories, `root` itself included; a file with several names counts once
  uint64_t entries = 0;  // beneath `root`
};

// Blocks for as long as it takes to look at every entry once. What disappears meanwhile does not count; of a tree that is moved
// about meanwhile, what was seen. Errors: what `root` itself cannot be read with; cancelled when stop is requested.
Result<TreeSize> tree_size(const Fd& root, std::stop_token stop);
// Whether there is nothing in it. Reads no further than it has to.
Result<bool> is_empty(const Fd& root);

}  // namespace coracle::sys
