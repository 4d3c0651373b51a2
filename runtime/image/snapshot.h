// SPDX-License-Identifier: Apache-2.0
// Snapshots: the root file systems of containers. Each is an image's unpacked layers, read-only and shared, under one
// writable layer of its own; the kernel's overlay file system puts them together.
//
//   create(name, image) → mount(name) = a detached mount, for the launch plan → … → remove(name)
//
// A snapshot holds its image: ImageStore::remove refuses to take the content away while one exists.
// Source: kernel Documentation/filesystems/overlayfs.rst.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::image {

constexpr size_t kSnapshotNameMax = 200;

class Snapshots {
 public:
  virtual ~Snapshots() = default;
  // Makes an empty writable layer over the image. `name`: [a-zA-Z0-9][a-zA-Z0-9_.-]*, at most kSnapshotNameMax long.
  // Does not touch the disk's cache: a snapshot is not meant to outlive the machine's power. Errors: not_found (image),
  // already_exists, invalid (name). `id_map`: the user namespace of who will use it, when that is not the host's: what he
  // writes belongs to his ids, on the disk too, and nothing that he may call setuid root is the host's root's.
  virtual Result<void> create(const std::string& name, const std::string& image_id, const Fd* id_map = nullptr) = 0;
  // The root file system as a detached mount (fsmount), read-write, in nobody's tree until it is attached. Once per
  // snapshot. `id_map`: as at create; the image's layers are shown as its ids, without anything being written. Errors:
  // not_found, unsupported (this kernel or file system cannot do that), and what the kernel said.
  virtual Result<Fd> mount(const std::string& name, const Fd* id_map = nullptr) = 0;
  // The directory of the writable layer on the disk, for measuring it; what is in it is hostile. Errors: not_found.
  virtual Result<Fd> writable(const std::string& name) = 0;
  // Deletes the writable layer. Call when nothing has it mounted any more. Succeeds when there is none.
  virtual Result<void> remove(const std::string& name) = 0;
  virtual Result<std::vector<std::string>> list() = 0;
  // The image alone as a detached read-only mount, for looking into it.
  virtual Result<Fd> mount_image(const std::string& image_id) = 0;
};

}  // namespace coracle::image
