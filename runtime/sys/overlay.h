// SPDX-License-Identifier: Apache-2.0
// An overlay file system as a detached mount: it is in no mount namespace until it is attached.
// Source: kernel Documentation/filesystems/overlayfs.rst; fsopen(2), fsconfig(2), fsmount(2), open_tree(2).
#pragma once

#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct Overlay {
  std::vector<std::string> lower;  // directories, topmost first; at least one
  std::string upper, work;         // both or neither; without them it is read-only and needs at least two lower directories
  std::string staging;             // a private directory, for kernels that require a temporary attachment
  const Fd* id_map = nullptr;      // a user namespace: the lower directories are mounted id-mapped
};

// How the layers are passed to the kernel. `automatic` tries what the kernel supports; the others are for tests.
enum class OverlayWay { automatic, one_by_one, by_descriptor, classic };

// Errors: unsupported if a layer's file system or the kernel (before 5.19) has no id-mapped mounts; otherwise the kernel's, with
// the name of the step.
Result<Fd> mount_overlay(const Overlay& overlay, OverlayWay way = OverlayWay::automatic);
// A directory as a detached, id-mapped bind mount. Errors: unsupported.
Result<Fd> clone_id_mapped(const std::string& path, const Fd& id_map);
// A directory as a detached read-only bind mount.
Result<Fd> mount_read_only(const std::string& path);

}  // namespace coracle::sys
