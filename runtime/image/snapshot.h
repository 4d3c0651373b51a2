// SPDX-License-Identifier: Apache-2.0
// Snapshots: the root file systems of containers. Each consists of an image's unpacked layers, read-only and shared, and its own
// writable layer, combined by the overlay file system.
//
//   create(name, image) → mount(name) = a detached mount, for the launch plan → … → remove(name)
//
// A snapshot keeps its image: ImageStore::remove does not delete content that a snapshot uses.
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
  // Creates an empty writable layer over the image. `name`: [a-zA-Z0-9][a-zA-Z0-9_.-]*, at most kSnapshotNameMax characters. Not
  // synced: a snapshot need not survive a power failure. `id_map`: the user namespace of the container, if it is not the host's.
  // Files that it writes belong to its ids, on the disk too, and a setuid-root file belongs to its root and not to the host's.
  // Errors: not_found (image), already_exists, invalid (name).
  virtual Result<void> create(const std::string& name, const std::string& image_id, const Fd* id_map = nullptr) = 0;
  // The root file system as a detached, writable mount (fsmount), in no mount namespace until it is attached. Once per snapshot.
  // `id_map`: as for create; the image's layers are id-mapped, and nothing is changed on the disk. Errors: not_found, unsupported
  // (kernel or file system), and the kernel's.
  virtual Result<Fd> mount(const std::string& name, const Fd* id_map = nullptr) = 0;
  // The directory of the writable layer, for measuring its size; its contents are untrusted. Errors: not_found.
  virtual Result<Fd> writable(const std::string& name) = 0;
  // Deletes the writable layer. It must not be mounted any more. It is no error if there is none.
  virtual Result<void> remove(const std::string& name) = 0;
  virtual Result<std::vector<std::string>> list() = 0;
  // The image as a detached read-only mount, for reading its files.
  virtual Result<Fd> mount_image(const std::string& image_id) = 0;
};

}  // namespace coracle::image
