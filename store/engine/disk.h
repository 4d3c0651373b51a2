// SPDX-License-Identifier: Apache-2.0
// Disk: the engine's file. One table of objects by row number, one row of marks. It is read once, at the start, and
// afterwards only written, in transactions that are on the disk when commit() returns.
//
// Where the file system is read-only (one with errors, most often), a copy in memory is read instead: SQLite opens no log there.
// Then commits fail until the file can be written to.
//
// The marks keep revisions from repeating: `reserved` is written before any revision up to it is used, and only a clean
// close says how far the counter really came. After a crash it goes on above `reserved`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/units.h"
#include "store/engine/kinds.h"
#include "store/engine/sqlite.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::engine {

constexpr size_t kFindingsMax = 20;  // of one check

struct Row {
  int64_t id = 0;
  RestingPtr object;  // null: the row is deleted
};

class Disk {
 public:
  // Opens or creates. `copies`: a directory in memory, for the copy of a file on a read-only disk; "": that cannot be opened.
  // Errors: see sqlite.h; the text names the file.
  static Result<std::unique_ptr<Disk>> open(const std::string& path, const char* vfs, const std::string& copies = "");
  ~Disk();
  // Renames the file (and its log) to `path`.damaged-<time>. Returns the new name.
  static Result<std::string> set_aside(const std::string& path);

  // Everything there is, in no order. Errors: internal with reason kDamaged.
  Result<std::vector<Row>> load(StoredKinds& kinds);
  // No revision up to this one may be used again. After load().
  Revision reserved() const { return reserved_; }

  // One transaction; on the disk when it returns. `reserve` raises the mark. Errors: see sqlite.h; unavailable when somebody else
  // has written to the file while it could not be opened.
  Result<void> commit(const std::vector<Row>& rows, std::optional<Revision> reserve);
  // The counter stands here and nothing is pending: the next start goes on from `revision`.
  Result<void> mark_clean(Revision revision);

  // ---- upkeep ----
  // What SQLite finds wrong with the file, read from the medium and not from memory; empty: nothing. Then hands every row's
  // number and text to `each`, until it fails. Blocks for as long as the whole file takes to read.
  std::vector<std::string> check(const std::function<void(int64_t id, std::string_view text)>& each);
  struct Size {
    uint64_t bytes = 0, unused = 0;
  };
  Result<Size> size();
  // Writes the file anew, without what is unused. Writes twice what is left.
  Result<void> compact();
  void release_memory() {
    if (file_) file_->database.release_memory();
  }

 private:
  struct File {
    Fd raw;  // the same file, for advice to the kernel. Closed last: closing it would give SQLite's lock away
    Database database;
    Statement begin, put, drop, mark, commit;
  };
  class Copy;
  Disk(std::string path, const char* vfs);
  static Result<File> open_file(const std::string& path, const char* vfs);
  Result<void> open_late();
  Result<void> write_rows(const std::vector<Row>& rows, std::optional<Revision> reserve);
  const std::string path_;
  const char* const vfs_;
  std::optional<File> file_;    // none: the disk is read-only
  std::unique_ptr<Copy> copy_;  // then, until load() has read it
  Revision found_ = 0;          // the mark that the file had
  Revision reserved_ = 0;
};

}  // namespace coracle::engine
