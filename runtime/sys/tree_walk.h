// SPDX-License-Identifier: Apache-2.0
// A walk through a directory tree that a container controls and may change at the same time. Every step is by descriptor. It
// follows no link and crosses no mount, and its memory grows neither with depth nor with width. Errors: errno's, unless stated.
// Source: openat2(2), readdir(3).
#pragma once

#include <sys/stat.h>

#include <functional>
#include <stop_token>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct TreeEntry {
  int directory;     // descriptor of the directory that contains it
  const char* name;  // "." for the root
  size_t depth;      // 0 for the root, 1 for its entries
  const struct stat& about;
};

// Opens an entry for reading and returns its current metadata. The descriptor is invalid if the entry has disappeared or become
// another file. Never follows a link.
struct OpenedEntry {
  Fd object;
  struct stat about {};
};
Result<OpenedEntry> open_entry(const TreeEntry& entry);
Result<Fd> directory_of(const TreeEntry& entry);  // a new descriptor of the same directory

// Calls `each` for every entry once: `root` first, a directory before its contents. Blocks until done. Entries that disappear
// meanwhile are skipped; if parts of the tree are moved, some may be missed. Errors: those of reading `root`; those of `each`,
// which end the walk; cancelled if a stop is requested.
Result<void> walk_tree(const Fd& root, const std::function<Result<void>(const TreeEntry&)>& each, std::stop_token stop);

}  // namespace coracle::sys
