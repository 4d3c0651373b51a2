// SPDX-License-Identifier: Apache-2.0
// Inodes as entries of a tar stream: type, mode, owners, time of change, chosen attributes, hard links; files with their holes,
// or with zeros instead.
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
    bool (*attribute)(std::string_view name);  // whether one goes along
    bool holes = false;                        // as such; else zeros
  };
  InodeTar(TarWriter& to, Choice choice) : tar_(to), choice_(choice) {}

  // `name` of a directory ends in a slash.
  Result<void> add_directory(const Fd& directory, const std::string& name, const struct stat& info);
  // Of the second name of an inode and the following only that they are it. Errors: conflict, it shrank meanwhile.
  Result<void> add_file(const Fd& file, const std::string& name, const struct stat& info);
  // What is neither directory nor file: a link, a device, a fifo. Other names of one as of a file.
  Result<void> add_other(const Fd& parent, const std::string& name, const std::string& path, const struct stat& info);

 private:
  Result<void> add_attributes(archive_entry* entry, const Fd& object);
  // Adds the entry as another name of an inode that has an entry. Returns whether it is one.
  Result<bool> add_link(archive_entry* entry, const std::string& name, const struct stat& info);
  Result<std::vector<sys::Stretch>> data_of(const Fd& file, const struct stat& info) const;
  Result<void> add_data(const Fd& file, const std::string& name, sys::Stretch data);
  Result<void> add_zeros(int64_t count);

  TarWriter& tar_;
  const Choice choice_;
  std::map<ino_t, std::string> links_;  // where an inode of several names stood first
  std::string buffer_ = std::string(256 << 10, '\0');
};

}  // namespace coracle::image
