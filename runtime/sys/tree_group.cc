// SPDX-License-Identifier: Apache-2.0
// See tree_group.h.
#include "runtime/sys/tree_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "runtime/sys/tree_walk.h"

namespace coracle::sys {
namespace {

constexpr mode_t kFile = 0660, kDirectory = 02770;

// By a descriptor of the entry itself, because fchmodat follows links.
Result<void> set_mode(const TreeEntry& entry, mode_t mode) {
  Fd itself(::openat(entry.directory, entry.name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat about;
  if (!itself || ::fstat(itself.get(), &about) < 0 || about.st_ino != entry.about.st_ino) return {};  // replaced meanwhile
  if (::chmod(("/proc/self/fd/" + std::to_string(itself.get())).c_str(), mode) < 0) return Error::from_errno("set mode");
  return {};
}

}  // namespace

Result<bool> is_of_group(const Fd& root, uint32_t group) {
  struct stat about;
  if (::fstat(root.get(), &about) < 0) return Error::from_errno("stat");
  return about.st_gid == group && (about.st_mode & kDirectory) == kDirectory;
}

// Group before mode: changing the group clears the set-id bits. The root last: it marks the tree as complete.
Result<void> give_to_group(const Fd& root, uint32_t group, std::stop_token stop) {
  auto give = [&](const TreeEntry& entry) -> Result<void> {
    bool is_given = entry.about.st_gid == group;
    if (!is_given && ::fchownat(entry.directory, entry.name, uid_t(-1), group, AT_SYMLINK_NOFOLLOW) < 0)
      return errno == ENOENT ? Result<void>() : Error::from_errno("set group");
    if (S_ISLNK(entry.about.st_mode)) return {};
    mode_t is = entry.about.st_mode & 07777, wanted = is | (S_ISDIR(entry.about.st_mode) ? kDirectory : kFile);
    return is_given && is == wanted ? Result<void>() : set_mode(entry, wanted);
  };
  auto give_inner = [&](const TreeEntry& entry) { return entry.depth == 0 ? Result<void>() : give(entry); };
  TRY(walk_tree(root, give_inner, std::move(stop)));
  struct stat about;
  if (::fstat(root.get(), &about) < 0) return Error::from_errno("stat");
  return give({root.get(), ".", 0, about});
}

}  // namespace coracle::sys
