// SPDX-License-Identifier: Apache-2.0
// LogBuffer: a VFS for SQLite that writes the write-ahead log in large pieces. SQLite writes each page of 4 KiB to it in two
// calls, 24 bytes and the page, which also straddle the pages of the file system: an object of 3 MB takes 1500 system calls. All
// other files are those of the VFS below.
//
// What was written is collected as long as it follows on. It goes to the VFS below before a sync, before a read of it, and when
// kLogPieceBytes have been collected. So an error of a write may come from the sync that follows it, which is before the commit
// counts; what was collected is dropped then, as a commit that failed.
// Source: sqlite.org/vfs.html, sqlite.org/c3ref/io_methods.html.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace coracle::engine {

inline constexpr size_t kLogPieceBytes = 128 << 10;

class LogBuffer {
 public:
  // Registers the VFS. `below`: the name of another, which must outlive this one; nullptr: the default.
  explicit LogBuffer(const char* below);
  ~LogBuffer();  // after the databases that use it are closed
  LogBuffer(const LogBuffer&) = delete;
  const char* vfs() const { return name_.c_str(); }

  struct Vfs;  // what SQLite sees

 private:
  const std::string name_;
  std::unique_ptr<Vfs> registered_;
};

}  // namespace coracle::engine
