// SPDX-License-Identifier: Apache-2.0
// Snapshots on the disk: creates, mounts and deletes snapshots/<name>/{upper,work} and the link `image`. Also records holders
// that use an image without writing: the link snapshots/<holder>. The store determines the image's layers and keeps them while
// they are used.
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
  // `dir` (at `path`) contains the snapshots; `trash` is a directory on the same file system that is emptied at the next start.
  SnapshotDir(const Fd& dir, std::string path, const Fd& trash, std::string trash_path)
      : dir_(dir), path_(std::move(path)), trash_(trash), trash_path_(std::move(trash_path)) {}

  struct Found {
    std::map<std::string, std::string> snapshots, holds;  // names and the image ids that they use
  };
  // Deletes what a crash has left incomplete.
  Result<Found> load();
  // `root_like`: the new root gets the owner and mode of this directory. `id_map`: see snapshot.h.
  Result<void> create(const std::string& name, const std::string& image_id, const std::string& root_like, const Fd* id_map);
  // `lower`: layer directories, topmost first.
  Result<Fd> mount(const std::string& name, const std::vector<std::string>& lower, const Fd* id_map) const;
  Result<Fd> mount_read_only(const std::vector<std::string>& lower, const Fd* id_map = nullptr) const;
  Result<Fd> writable(const std::string& name) const;
  Result<void> remove(const std::string& name);
  // Replaces the image that the holder held before; after an error it still holds that.
  Result<void> hold(const std::string& holder, const std::string& image_id);
  Result<void> release(const std::string& holder);  // no error if there is none

 private:
  const Fd& dir_;
  std::string path_;
  const Fd& trash_;
  std::string trash_path_;
  std::atomic<uint64_t> made_{0};  // for names in the trash
};

bool is_snapshot_name(std::string_view name);

}  // namespace coracle::image
