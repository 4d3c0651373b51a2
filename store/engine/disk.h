// SPDX-License-Identifier: Apache-2.0
// Disk: the engine's file, with one table of objects by row id and one row of marks. It is read once, at the start. After that it
// is only written, in transactions that are synced when commit() returns: they are in the log then. checkpoint() writes what is
// in the log into the file; that takes as long as several commits, so it is done when nobody waits, if possible.
//
// On a read-only file system (often after I/O errors) a copy in memory is read instead, because SQLite cannot open its log there.
// Then commits fail until the file becomes writable.
//
// The marks keep revisions from being reused: `reserved` is written before a revision up to it is used, and only a clean close
// stores the last revision in use. After a crash the counter continues above `reserved`.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/units.h"
#include "store/engine/kinds.h"
#include "store/engine/log_buffer.h"
#include "store/engine/sqlite.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::engine {

constexpr size_t kFindingsMax = 20;  // per check

struct Row {
  int64_t id = 0;
  RestingPtr object;  // null: the row is deleted
};

class Disk {
 public:
  // Opens or creates the file. `copies`: a directory in memory for the copy of a file on a read-only disk; "": such a file cannot
  // be opened. Errors: see sqlite.h; the text contains the path.
  static Result<std::unique_ptr<Disk>> open(const std::string& path, const char* vfs, const std::string& copies = "");
  ~Disk();
  // Renames the file (with its log) to `path`.damaged-<time>. Returns the new name.
  static Result<std::string> set_aside(const std::string& path);

  // All objects, in no order. Errors: internal with reason kDamaged.
  Result<std::vector<Row>> load(StoredKinds& kinds);
  // Revisions up to this one must not be used again. Valid after load().
  Revision reserved() const { return reserved_; }

  // Writes one transaction, synced on return. `reserve` raises the mark. Errors: see sqlite.h; unavailable if another process has
  // written to the file while it could not be opened.
  Result<void> commit(const std::vector<Row>& rows, std::optional<Revision> reserve);
  // Records that no writes are pending: the next start continues from `revision`.
  Result<void> mark_clean(Revision revision);

  bool log_is_long() const;      // checkpoint() has something to do. False while the file is frozen
  bool log_is_too_long() const;  // and is not put off any more
  void checkpoint();             // on failure it is due again later; the next commit has the error, if it lasts

  // ---- maintenance ----
  // Checks the file with SQLite, reading from the medium and not from the page cache; empty: no problems. Then calls `each` with
  // every row's id and text until it fails. Blocks while the whole file is read. `frozen`: freeze() was called, and commits may
  // go on in another thread; otherwise not. If melted() is true afterwards, its findings mean nothing.
  std::vector<std::string> check(bool frozen, const std::function<void(int64_t id, std::string_view text)>& each);
  // From freeze() to thaw() the file stays as it is: what is committed stays in the log, which was written into the file before.
  // It also thaws after the commit with which the log exceeds `log_bytes_max`. Errors: of the disk; then nothing is frozen.
  Result<void> freeze(uint64_t log_bytes_max);
  bool melted() const { return melted_; }  // by the log, since freeze(). Thread-safe
  void thaw();
  struct Size {
    uint64_t bytes = 0, unused = 0;
  };
  Result<Size> size();
  // Rewrites the file without unused pages. Writes twice the remaining size. Not while it is frozen.
  Result<void> compact();
  void release_memory();

 private:
  struct File {
    std::unique_ptr<LogBuffer> log;
    Fd raw;  // the same file, for posix_fadvise. Closed last: closing it would release SQLite's locks
    Database database;
    Statement begin, put, drop, mark, commit;
  };
  class Copy;
  class Use;
  Disk(std::string path, const char* vfs);
  static Result<File> open_file(const std::string& path, const char* vfs);
  Result<void> open_late();
  Result<void> write_rows(const std::vector<Row>& rows, std::optional<Revision> reserve);
  const std::string path_;
  const char* const vfs_;
  std::atomic<bool> in_use_ = false;
  int log_pages_ = 0;                             // at the last commit, since the last checkpoint
  int checkpoint_at_;                             // with so many it is due
  std::optional<File> file_;                      // none: the disk is read-only
  std::optional<uint64_t> frozen_log_bytes_max_;  // none: the file is not frozen
  std::atomic<bool> melted_ = false;
  std::unique_ptr<Copy> copy_;  // the copy for that case, until load() has read it
  Revision found_ = 0;          // the mark in the file when it was opened
  Revision reserved_ = 0;
};

}  // namespace coracle::engine
