// SPDX-License-Identifier: Apache-2.0
// Snapshots on the disk: snapshots/<name>/{upper,work} and the link `image`, made, mounted and deleted; and who holds an image
// without writing to it: the link snapshots/<holder>. What an image's layers are, and that it stays while it is used, is the
// store's affair.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::image {

class SnapshotDir {
 public:
  // `dir` (at `path`) holds the snapshots; `trash` is a directory of the same file system, emptied at the next start.
  SnapshotDir(const Fd& dir, std::string path, const Fd& trash, std::string trash_path)
      : dir_(dir), path_(std::move(path)), trash_(trash), trash_path_(std::move(trash_path)) {}

  struct Found {
    std::map<std::string, std::string> snapshots, holds;  // names and the image ids they stand on
  };
  // Deletes what a crash left half-made.
  Result<Found> load();
  // `root_like`: the directory whose owner and mode the new root gets. `id_map`: see snapshot.h.
  Result<void> create(const std::string& name, const std::string& image_id, const std::string& root_like, const Fd* id_map);
  // `lower`: layer directories, topmost first.
  Result<Fd> mount(const std::string& name, const std::vector<std::string>& lower, const Fd* id_map) const;
  Result<Fd> mount_read_only(const std::vector<std::string>& lower, const Fd* id_map = nullptr) const;
  Result<Fd> writable(const std::string& name) const;
  Result<void> remove(const std::string& name);
  // Instead of what it held before, which it still holds when this fails.
  Result<void> hold(const std::string& holder, const std::string& image_id);
  Result<void> release(const std::string& holder);  // succeeds when there is none

 private:
  const Fd& dir_;
  std::string path_;
  const Fd& trash_;
  std::string trash_path_;
  std::atomic<uint64_t> made_{0};  // names in the trash
};

bool is_snapshot_name(std::string_view name);

}  // namespace coracle::image
