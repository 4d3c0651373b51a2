// SPDX-License-Identifier: Apache-2.0
// See tree_size.h.
#include "runtime/sys/tree_size.h"

#include <algorithm>
#include <string_view>

#include "runtime/sys/tree_walk.h"

namespace coracle::sys {
namespace {

constexpr int64_t kBlockBytes = 512;  // the unit of st_blocks on every file system

// Each hard link counts its share, so that all links together count the file once.
int64_t share_of(const struct stat& about) {
  int64_t bytes = int64_t(about.st_blocks) * kBlockBytes;
  int64_t names = S_ISDIR(about.st_mode) ? 1 : int64_t(std::max<nlink_t>(about.st_nlink, 1));
  return (bytes + names - 1) / names;
}

}  // namespace

Result<TreeSize> tree_size(const Fd& root, std::stop_token stop) {
  TreeSize size;
  auto add = [&](const TreeEntry& entry) -> Result<void> {
    if (std::string_view(entry.name) != ".") ++size.entries;
    size.bytes.count += share_of(entry.about);
    return {};
  };
  TRY(walk_tree(root, add, std::move(stop)));
  return size;
}

Result<bool> is_empty(const Fd& root) {
  bool found = false;
  auto look = [&](const TreeEntry& entry) {
    found = entry.depth > 0;
    return found ? Result<void>(Error(Code::cancelled, "found")) : Result<void>();
  };
  auto walked = walk_tree(root, look, {});
  if (!found) TRY(std::move(walked));
  return !found;
}

}  // namespace coracle::sys
