// SPDX-License-Identifier: Apache-2.0
// Mounts as descriptors: made, shaped and handed on without ever appearing in our own tree.
// Source: fsopen(2), open_tree(2), mount_setattr(2), move_mount(2), pivot_root(2); Linux 5.12 and later.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// One option of a file system; without a value it is a flag.
struct FsOption {
  std::string key, value;
  bool has_value = true;
};

// A new file system, detached. `attributes` are MOUNT_ATTR_*. Errors carry what the file system itself said.
Result<Fd> new_file_system(const std::string& type, const std::vector<FsOption>& options, uint64_t attributes);
// A detached copy of the mount at `place`, of those beneath it too when `recursive`.
Result<Fd> clone_mount(const Fd& place, bool recursive);
Result<Fd> clone_mount(const std::string& path, bool recursive);

struct MountChange {
  uint64_t set = 0, clear = 0;  // MOUNT_ATTR_*
  uint64_t propagation = 0;     // MS_SHARED, ...; 0 = as it is
  const Fd* id_map = nullptr;   // a user namespace whose maps translate the owners of files; null = as it is
  bool recursive = false;
};
Result<void> change_mount(const Fd& mount, const MountChange& change);
// Attaches a detached mount over a directory or file of ours.
Result<void> attach_mount(const Fd& mount, const Fd& place);
// An attached mount becomes "/" of this process, which has a mount namespace of its own and one thread; of what was mounted there
// before nothing is left in it.
Result<void> enter_root(const Fd& mount);
Result<void> detach_mount(const std::string& path);  // lazily
// The types ("tmpfs") of the file systems mounted on the directory, the last one over the others. Asks none of them, so that a
// server of one that does not answer holds up nobody. Errors: not_found, no such parent directory.
Result<std::vector<std::string>> mounts_on(const std::string& directory);
// Everything that is mounted below the directory, the innermost first, by `detach`, lazily if it is not given. Not what is
// mounted on the directory itself.
Result<void> detach_below(const std::string& directory,
                          const std::function<Result<void>(const std::string& path)>& detach = detach_mount);

}  // namespace coracle::sys
