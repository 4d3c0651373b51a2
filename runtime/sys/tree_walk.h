// SPDX-License-Identifier: Apache-2.0
// A walk through a directory tree that a container may change at the same time and shapes as it likes: every step is by
// descriptor, no link is followed, no mount is crossed, and neither depth nor breadth takes memory. Source: openat2(2),
// readdir(3).
#pragma once

#include <sys/stat.h>

#include <functional>
#include <stop_token>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct TreeEntry {
  int directory;     // descriptor of the directory that it is in
  const char* name;  // "." of the root itself
  size_t depth;      // 0 of the root itself, 1 of what is in it
  const struct stat& about;
};

// The directory or file that an entry is, opened for reading, with what is known of it now. Its descriptor is invalid when it has
// gone meanwhile, or has become something else. Never follows a link.
struct OpenedEntry {
  Fd object;
  struct stat about {};
};
Result<OpenedEntry> open_entry(const TreeEntry& entry);
Result<Fd> directory_of(const TreeEntry& entry);  // another descriptor of it

// Hands out every entry once, `root` first, a directory before what is in it. Blocks for as long as that takes. What disappears
// meanwhile is left out; of a tree that is moved about meanwhile, what was seen. Errors: what `root` itself cannot be read with;
// those of `each`, which end the walk; cancelled when stop is requested.
Result<void> walk_tree(const Fd& root, const std::function<Result<void>(const TreeEntry&)>& each, std::stop_token stop);

}  // namespace coracle::sys
