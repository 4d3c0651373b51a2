// SPDX-License-Identifier: Apache-2.0
// One overlay file system as a detached mount: it is in nobody's tree until it is attached.
// Source: kernel Documentation/filesystems/overlayfs.rst; fsopen(2), fsconfig(2), fsmount(2), open_tree(2).
#pragma once

#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct Overlay {
  std::vector<std::string> lower;  // directories, the topmost first; at least one
  std::string upper, work;         // both or neither; without them it is read-only and needs two lower ones
  std::string staging;             // a directory of ours, for kernels where it must be attached for a moment
  const Fd* id_map = nullptr;      // a user namespace: the lower ones are shown with their owners as its ids
};

// How layers are told to the kernel; `automatic` finds out. The others are for tests.
enum class OverlayWay { automatic, one_by_one, by_descriptor, classic };

// Errors: unsupported, a layer's file system or this kernel (before 5.19) knows no id maps; else what the kernel says, with
// the step named.
Result<Fd> mount_overlay(const Overlay& overlay, OverlayWay way = OverlayWay::automatic);
// A directory as a detached bind mount, its owners shown as the user namespace's ids. Errors: unsupported.
Result<Fd> clone_id_mapped(const std::string& path, const Fd& id_map);
// A directory as a detached read-only bind mount.
Result<Fd> mount_read_only(const std::string& path);

}  // namespace coracle::sys
