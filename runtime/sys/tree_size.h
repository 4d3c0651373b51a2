// SPDX-License-Identifier: Apache-2.0
// The disk usage of a directory tree, counted as du(1) does: blocks, not lengths. A container may control the tree, so it is
// walked as tree_walk.h describes. Source: stat(2).
#pragma once

#include <cstdint>
#include <stop_token>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle::sys {

struct TreeSize {
  Bytes bytes;           // of all files and directories with `root`; a file with several hard links counts once
  uint64_t entries = 0;  // below `root`
};

// Blocks until every entry has been visited once. Entries that disappear meanwhile are not counted; if parts of the tree are
// moved, the result covers what was visited. Errors: those of reading `root`; cancelled if a stop is requested.
Result<TreeSize> tree_size(const Fd& root, std::stop_token stop);
// True if the directory is empty. Reads no more entries than necessary.
Result<bool> is_empty(const Fd& root);

}  // namespace coracle::sys
