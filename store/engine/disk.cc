// SPDX-License-Identifier: Apache-2.0
// Disk. See disk.h. Rows are found by row id only (memory has the names), so there is no index to write. The table has row ids,
// because a WITHOUT ROWID table writes more than twice as much.
#include "store/engine/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <source_location>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "store/engine/layout.h"
#include "store/object/object.h"

namespace coracle::engine {
namespace {

// EXCLUSIVE: no other process reads the file, so the WAL index needs no shared memory and a second daemon is rejected.
constexpr const char* kSettings =
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL; PRAGMA cache_size=-128; PRAGMA mmap_size=0;"
    "PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=4194304;"
    "PRAGMA trusted_schema=OFF;";
// A checkpoint is due after so many pages of 4 KiB, and is not put off any more after kLogPagesMax. After it, the log begins anew
// and is truncated to 4 MiB, so it cannot grow without limit.
constexpr int kLogPages = 1000, kLogPagesMax = 1400;

// Creates the tables in a new file; rejects files that are not a store or have a newer layout.
Result<void> prepare_file(Database& database) {
  TRY(database.execute(kSettings));
  std::string mode = TRY(database.query_text("PRAGMA journal_mode=WAL"));
  if (mode != "wal") return Error(Code::unsupported, "the file system refuses SQLite's write-ahead log (mode " + mode + ")");
  int64_t tables = TRY(database.query_integer("SELECT count(*) FROM sqlite_schema"));
  int64_t application = TRY(database.query_integer("PRAGMA application_id"));
  if (tables == 0 && application == 0) return make_tables(database);
  return check_layout(database, false);
}

Result<int64_t> reserved_in(Database& database) { return database.query_integer("SELECT reserved FROM marks WHERE id=1"); }

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Also for a file that does not exist.
bool is_on_read_only_disk(const std::string& path) {
  const std::string place = is_there(path) ? path : std::filesystem::path(path).parent_path().string();
  return ::access(place.c_str(), W_OK) != 0 && errno == EROFS;
}

Error read_only() { return Error::from_errno(EROFS, "the store's file").as(Code::unavailable); }

}  // namespace

// A copy of the file and its log in another directory, where SQLite can apply the log. The destructor deletes it.
class Disk::Copy {
 public:
  explicit Copy(std::string path) : path_(std::move(path)) {}
  ~Copy() {
    database_.reset();
    remove();
  }
  Copy(const Copy&) = delete;

  Result<void> make(const std::string& from) {
    remove();  // left by a killed daemon
    for (const char* suffix : {"", "-wal"}) {
      std::error_code failed;
      std::filesystem::copy_file(from + suffix, path_ + suffix, failed);
      if (failed && !(*suffix && failed == std::errc::no_such_file_or_directory))
        return Error::from_errno(failed.value(), "copy " + from + suffix + " to " + path_ + suffix);
    }
    Database database = TRY(Database::open(path_, nullptr));
    TRY(database.execute(kSettings));
    TRY(check_layout(database, false));
    database_.emplace(std::move(database));
    return {};
  }
  Database& database() { return *database_; }

 private:
  void remove() const {
    for (const char* suffix : {"", "-wal", "-shm"}) (void)::unlink((path_ + suffix).c_str());
  }
  const std::string path_;
  std::optional<Database> database_;
};

// The caller's turn with the connection, which is not thread-safe. Ends the process if another thread has it: two of them would
// destroy SQLite's memory, and maybe the file.
class Disk::Use {
 public:
  explicit Use(Disk& disk, std::source_location where = std::source_location::current()) : disk_(disk) {
    if (disk_.in_use_.exchange(true)) bug("Disk", "two threads use the store's file at once", where);
  }
  ~Use() { disk_.in_use_ = false; }
  Use(const Use&) = delete;

 private:
  Disk& disk_;
};

Disk::Disk(std::string path, const char* vfs) : path_(std::move(path)), vfs_(vfs), checkpoint_at_(kLogPages) {}
Disk::~Disk() = default;

Result<std::unique_ptr<Disk>> Disk::open(const std::string& path, const char* vfs, const std::string& copies) {
  std::unique_ptr<Disk> disk(new Disk(path, vfs));
  const bool is_read_only = is_on_read_only_disk(path);
  if (is_read_only && (copies.empty() || !is_there(path))) return read_only().wrap(path);
  if (is_read_only) {
    disk->copy_ = std::make_unique<Copy>(copies + "/store-as-read.db");
    TRY(disk->copy_->make(path));
  } else {
    disk->file_ = TRY(open_file(path, vfs));
    disk->file_->database.count_log(disk->log_pages_);
  }
  Database& database = disk->file_ ? disk->file_->database : disk->copy_->database();
  const int64_t mark = TRY(reserved_in(database).wrap(path));
  disk->found_ = disk->reserved_ = Revision(mark);
  return disk;
}

Result<Disk::File> Disk::open_file(const std::string& path, const char* vfs) {
  auto log = std::make_unique<LogBuffer>(vfs);
  Database database = TRY(Database::open(path, log->vfs()));
  // The directory and the files are private: the log and its index inherit the mode of the main file.
  std::error_code ignored;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, ignored);
  TRY(prepare_file(database).wrap(path));
  Statement begin = TRY(database.prepare("BEGIN IMMEDIATE").wrap(path));
  Statement put = TRY(database.prepare("INSERT OR REPLACE INTO objects VALUES(?,?,?,?,?,?,?,?)").wrap(path));
  Statement drop = TRY(database.prepare("DELETE FROM objects WHERE id=?").wrap(path));
  Statement mark = TRY(database.prepare("UPDATE marks SET reserved=? WHERE id=1").wrap(path));
  Statement commit = TRY(database.prepare("COMMIT").wrap(path));
  Fd raw(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // fails if a test's VFS has the file elsewhere
  return File{std::move(log), std::move(raw),  std::move(database), std::move(begin),
              std::move(put), std::move(drop), std::move(mark),     std::move(commit)};
}

// Tries to open the file when the disk may have become writable.
Result<void> Disk::open_late() {
  if (is_on_read_only_disk(path_)) return read_only();
  File file = TRY(open_file(path_, vfs_));
  const int64_t mark = TRY(reserved_in(file.database));
  if (Revision(mark) != found_)
    return Error(Code::unavailable, path_ + " was written to by somebody else while it was read-only here");
  file_.emplace(std::move(file));
  file_->database.count_log(log_pages_);
  return {};
}

Result<std::string> Disk::set_aside(const std::string& path) {
  std::string aside = path + ".damaged-" + format_time(system_clock().now());
  std::erase(aside, ':');
  for (const char* suffix : {"-wal", "-shm", ""}) {  // the log first: it must not be used with a new file
    std::error_code failed;
    std::filesystem::rename(path + suffix, aside + suffix, failed);
    if (failed && failed != std::errc::no_such_file_or_directory)
      return Error::from_errno(failed.value(), "rename " + path + suffix + " to " + aside + suffix);
  }
  return aside;
}

Result<std::vector<Row>> Disk::load(StoredKinds& kinds) {
  Database& database = file_ ? file_->database : copy_->database();
  Scope read([&] { copy_.reset(); });
  Statement all = TRY(database.prepare("SELECT id, grp, resource, ns, name, uid, revision, body FROM objects"));
  std::vector<Row> rows;
  std::set<std::pair<const Kind*, Key>> seen;
  for (;;) {
    bool row = TRY(all.step());
    if (!row) return rows;
    Key key{std::string(all.text(3)), std::string(all.text(4))};
    const Kind* kind = kinds.of(all.text(1), all.text(2), !key.ns.empty(), all.text(7));
    if (!seen.insert({kind, key}).second) return damaged(kind->qualified_resource() + " " + key.text() + " is there twice");
    auto object = RestingObject::from_text(*kind, key, Revision(all.integer(6)), all.text(5), all.text(7));
    if (!object) return damaged(object.error().text());
    reserved_ = std::max(reserved_, (*object)->revision());
    rows.push_back({all.integer(0), *std::move(object)});
  }
}

Result<void> Disk::write_rows(const std::vector<Row>& rows, std::optional<Revision> reserve) {
  TRY(file_->begin.run());
  for (const Row& row : rows) {
    if (row.object) {
      const RestingObject& object = *row.object;
      std::string buffer;
      file_->put.bind(row.id).bind(object.kind().group).bind(object.kind().resource).bind(object.ns()).bind(object.name());
      file_->put.bind(object.uid()).bind(int64_t(object.revision())).bind(object.text(buffer));
      TRY(file_->put.run());
    } else {
      TRY(file_->drop.bind(row.id).run());
    }
  }
  if (reserve) {
    TRY(file_->mark.bind(int64_t(*reserve)).run());
  }
  return file_->commit.run();
}

Result<void> Disk::commit(const std::vector<Row>& rows, std::optional<Revision> reserve) {
  Use use(*this);
  if (!file_) TRY(open_late().wrap("write to the store"));
  auto done = write_rows(rows, reserve);
  if (!done) {
    file_->database.roll_back();
    return done.take_error().wrap("write to the store");
  }
  if (reserve) reserved_ = *reserve;
  std::error_code absent;  // then the bytes are the largest number
  if (frozen_log_bytes_max_)
    if (uint64_t bytes = std::filesystem::file_size(path_ + "-wal", absent); !absent && bytes > *frozen_log_bytes_max_)
      melted_ = true, thaw();
  return {};
}

bool Disk::log_is_long() const { return file_ && !frozen_log_bytes_max_ && log_pages_ >= checkpoint_at_; }

bool Disk::log_is_too_long() const { return log_is_long() && log_pages_ >= kLogPagesMax; }

void Disk::checkpoint() {
  Use use(*this);
  auto done = file_->database.execute("PRAGMA wal_checkpoint(PASSIVE)");
  if (done) log_pages_ = 0;
  checkpoint_at_ = log_pages_ + kLogPages;
}

Result<void> Disk::mark_clean(Revision revision) { return commit({}, revision); }

Result<void> Disk::freeze(uint64_t log_bytes_max) {
  Use use(*this);
  if (!file_) return read_only();
  Database& database = file_->database;
  Statement checkpoint = TRY(database.prepare("PRAGMA wal_checkpoint(FULL)"));
  bool row = TRY(checkpoint.step());
  bool whole = row && checkpoint.integer(0) == 0 && checkpoint.integer(1) == checkpoint.integer(2);
  if (!whole) return Error(Code::unavailable, "the store's log cannot be written into its file now");
  TRY(checkpoint.run());
  frozen_log_bytes_max_ = log_bytes_max;
  melted_ = false;
  return {};
}

void Disk::thaw() { frozen_log_bytes_max_.reset(); }

std::vector<std::string> Disk::check(bool frozen, const std::function<void(int64_t id, std::string_view text)>& each) {
  std::vector<std::string> findings;
  if (!file_) return {read_only().text()};
  auto look = [&](Database& database) -> Result<void> {
    if (file_->raw) (void)::posix_fadvise(file_->raw.get(), 0, 0, POSIX_FADV_DONTNEED);  // on failure, cached pages are read
    Statement check = TRY(database.prepare("PRAGMA integrity_check(" + std::to_string(kFindingsMax) + ")"));
    while (!(frozen && melted_)) {
      bool row = TRY(check.step());
      if (!row) break;
      if (check.text(0) != "ok") findings.emplace_back(check.text(0));
    }
    if (!findings.empty()) return {};
    Statement all = TRY(database.prepare("SELECT id, body FROM objects"));
    while (!(frozen && melted_)) {
      bool row = TRY(all.step());
      if (!row) return {};
      each(all.integer(0), all.text(1));
    }
    return {};
  };
  // A second connection would not see what is only in the log.
  auto look_anyhow = [&]() -> Result<void> {
    if (!frozen) {
      Use use(*this);
      TRY(file_->database.execute("PRAGMA shrink_memory"));
      return look(file_->database);
    }
    Database still = TRY(Database::open_unchanging(path_, vfs_));
    return look(still);
  };
  auto done = look_anyhow();
  if (!done) findings.push_back(done.error().text());
  return findings;
}

Result<Disk::Size> Disk::size() {
  Use use(*this);
  if (!file_) return read_only();
  int64_t page = TRY(file_->database.query_integer("PRAGMA page_size"));
  int64_t pages = TRY(file_->database.query_integer("PRAGMA page_count"));
  int64_t unused = TRY(file_->database.query_integer("PRAGMA freelist_count"));
  return Size{uint64_t(page * pages), uint64_t(page * unused)};
}

Result<void> Disk::compact() {
  Use use(*this);
  if (!file_) return read_only();
  TRY(file_->database.execute("VACUUM").wrap("compact the store"));
  return file_->database.execute("PRAGMA wal_checkpoint(TRUNCATE)").wrap("compact the store");
}

void Disk::release_memory() {
  Use use(*this);
  if (file_) file_->database.release_memory();
}

}  // namespace coracle::engine
