// SPDX-License-Identifier: Apache-2.0
// Mounts as descriptors: they are created, configured and passed on without being attached in our own mount namespace. Errors:
// errno's, unless stated.
// Source: fsopen(2), open_tree(2), mount_setattr(2), move_mount(2), pivot_root(2); Linux 5.12 and later.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// One option of a file system. An option without a value is a flag.
struct FsOption {
  std::string key, value;
  bool has_value = true;
};

// A new, detached file system. `attributes` are MOUNT_ATTR_*. Errors include the file system's own message.
Result<Fd> new_file_system(const std::string& type, const std::vector<FsOption>& options, uint64_t attributes);
// A detached copy of the mount at `place`; with `recursive` also of the mounts beneath it.
Result<Fd> clone_mount(const Fd& place, bool recursive);
Result<Fd> clone_mount(const std::string& path, bool recursive);

struct MountChange {
  uint64_t set = 0, clear = 0;  // MOUNT_ATTR_*
  uint64_t propagation = 0;     // MS_SHARED, ...; 0: unchanged
  const Fd* id_map = nullptr;   // a user namespace for an id-mapped mount; null: unchanged
  bool recursive = false;
};
Result<void> change_mount(const Fd& mount, const MountChange& change);
// Attaches a detached mount over an existing directory or file.
Result<void> attach_mount(const Fd& mount, const Fd& place);
// Makes an attached mount the "/" of this process and detaches everything that was mounted before. The process must have one
// thread and a mount namespace of its own.
Result<void> enter_root(const Fd& mount);
Result<void> detach_mount(const std::string& path);  // lazy (MNT_DETACH)
// The types ("tmpfs") of the file systems that are mounted on the directory, the topmost last. It does not access them, so an
// unresponsive network file system does not block it. Errors: not_found if the parent directory does not exist.
Result<std::vector<std::string>> mounts_on(const std::string& directory);
// The innermost mount around the absolute path as it is written, without following links. It does not access the path either.
struct MountAround {
  std::string place, type;  // "/srv", "ext4"
  std::string device;       // "8:1"; all mounts of the same file system have the same
};
Result<MountAround> mount_around(std::string_view path);
// As mount_around, but follows links that are on the mounts of "/" and around `local`; those are the only ones that it accesses.
Result<MountAround> mount_behind(std::string_view path, std::string_view local);
// Where an open file is in its file system. It is the same through every mount that shows the file, also of a part of the file
// system. The file system is not accessed. Errors: not_found if its mount is no longer attached.
struct PlaceInDevice {
  std::string device, type;  // as MountAround's
  std::string path;          // "/volumes/data"; "/" is the root of the file system
};
Result<PlaceInDevice> place_in_device(const Fd& file);
// Decodes a path of a table of mounts, which writes a space as \040. Source: proc_pid_mountinfo(5), fstab(5).
std::string plain_path(std::string_view field);
// Since Linux 6.8 mounts are listed in the order in which they were created, not attached. Also true for a kernel whose release
// (uname(2)) is not understood.
bool lists_mounts_by_age(std::string_view release);
bool lists_mounts_by_age();  // this kernel
// Detaches every mount below the directory, the innermost first. Uses `detach`, by default a lazy unmount. The mount on the
// directory itself stays. The table of mounts is read once, however many there are.
Result<void> detach_below(const std::string& directory, const std::function<Result<void>(const MountAround& mount)>& detach = {});

}  // namespace coracle::sys
