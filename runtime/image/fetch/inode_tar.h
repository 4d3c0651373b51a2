// SPDX-License-Identifier: Apache-2.0
// Writes inodes as entries of a tar stream: type, mode, owners, modification time, selected attributes and hard links. Files are
// written with their holes, or with zeros instead.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/image/tar_writer.h"
#include "runtime/sys/inode.h"

namespace coracle::image {

class InodeTar {
 public:
  struct Choice {
    bool (*attribute)(std::string_view name);  // selects attributes to write
    bool holes = false;                        // write holes as sparse entries; otherwise as zeros
  };
  InodeTar(TarWriter& to, Choice choice) : tar_(to), choice_(choice) {}

  // `name` of a directory ends in a slash.
  Result<void> add_directory(const Fd& directory, const std::string& name, const struct stat& info);
  // The second and later names of an inode are written as hard links. Errors: conflict if the file has shrunk meanwhile.
  Result<void> add_file(const Fd& file, const std::string& name, const struct stat& info);
  // For any inode that is neither directory nor file: a symbolic link, device or FIFO. Further names become hard links.
  Result<void> add_other(const Fd& parent, const std::string& name, const std::string& path, const struct stat& info);

 private:
  Result<void> add_attributes(archive_entry* entry, const Fd& object);
  // Adds the entry as a hard link if its inode has been written before. Returns whether it was.
  Result<bool> add_link(archive_entry* entry, const std::string& name, const struct stat& info);
  Result<std::vector<sys::Stretch>> data_of(const Fd& file, const struct stat& info) const;
  Result<void> add_data(const Fd& file, const std::string& name, sys::Stretch data);
  Result<void> add_zeros(int64_t count);

  TarWriter& tar_;
  const Choice choice_;
  std::map<ino_t, std::string> links_;  // the first name of each inode with several names
  std::string buffer_ = std::string(256 << 10, '\0');
};

}  // namespace coracle::image
