// SPDX-License-Identifier: Apache-2.0
// Disk. See disk.h. Rows are found by number alone (memory knows the names), so there is no index to write beside the table;
// a table with row numbers, because one WITHOUT ROWID writes more than twice as much.
#include "store/engine/disk.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/engine/layout.h"

namespace coracle::engine {
namespace {

// EXCLUSIVE: nobody else reads the file, so the log's index needs no shared memory and a second daemon is refused.
// The log is folded back into the file every 1000 pages and cut to 4 MiB: it cannot grow without limit.
constexpr const char* kSettings =
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL; PRAGMA cache_size=-128; PRAGMA mmap_size=0;"
    "PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=1000; PRAGMA journal_size_limit=4194304;"
    "PRAGMA trusted_schema=OFF;";

// Makes the tables in a new file; refuses files that are not ours or newer than we are.
Result<void> prepare_file(Database& database) {
  TRY(database.execute(kSettings));
  std::string mode = TRY(database.query_text("PRAGMA journal_mode=WAL"));
  if (mode != "wal") return Error(Code::unsupported, "the file system refuses SQLite's write-ahead log (mode " + mode + ")");
  int64_t tables = TRY(database.query_integer("SELECT count(*) FROM sqlite_schema"));
  int64_t application = TRY(database.query_integer("PRAGMA application_id"));
  if (tables == 0 && application == 0) return make_tables(database);
  return check_layout(database, false);
}

}  // namespace

Disk::Disk(Fd raw, Database database, Statements statements)
    : raw_(std::move(raw)), database_(std::move(database)), do_(std::move(statements)) {}

Result<std::unique_ptr<Disk>> Disk::open(const std::string& path, const char* vfs) {
  Database database = TRY(Database::open(path, vfs));
  // The directory is private to us, and so are the files: the log and its index take over the mode of the first.
  std::error_code ignored;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, ignored);
  TRY(prepare_file(database).wrap(path));
  Statement begin = TRY(database.prepare("BEGIN IMMEDIATE").wrap(path));
  Statement put = TRY(database.prepare("INSERT OR REPLACE INTO objects VALUES(?,?,?,?,?,?,?,?)").wrap(path));
  Statement drop = TRY(database.prepare("DELETE FROM objects WHERE id=?").wrap(path));
  Statement mark = TRY(database.prepare("UPDATE marks SET reserved=? WHERE id=1").wrap(path));
  Statement commit = TRY(database.prepare("COMMIT").wrap(path));
  Fd raw(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // a file that a test's VFS keeps elsewhere has none
  Statements all{std::move(begin), std::move(put), std::move(drop), std::move(mark), std::move(commit)};
  std::unique_ptr<Disk> disk(new Disk(std::move(raw), std::move(database), std::move(all)));
  int64_t reserved = TRY(disk->database_.query_integer("SELECT reserved FROM marks WHERE id=1").wrap(path));
  disk->reserved_ = Revision(reserved);
  return disk;
}

Result<std::string> Disk::set_aside(const std::string& path) {
  std::string aside = path + ".damaged-" + format_time(system_clock().now());
  std::erase(aside, ':');
  for (const char* suffix : {"-wal", "-shm", ""}) {  // the log first: it must not be taken for that of a new file
    std::error_code failed;
    std::filesystem::rename(path + suffix, aside + suffix, failed);
    if (failed && failed != std::errc::no_such_file_or_directory)
      return Error::from_errno(failed.value(), "rename " + path + suffix + " to " + aside + suffix);
  }
  return aside;
}

Result<std::vector<Row>> Disk::load(StoredKinds& kinds) {
  Statement all = TRY(database_.prepare("SELECT id, grp, resource, ns, name, uid, revision, body FROM objects"));
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
  TRY(do_.begin.run());
  for (const Row& row : rows) {
    if (row.object) {
      const RestingObject& object = *row.object;
      std::string room;
      do_.put.bind(row.id).bind(object.kind().group).bind(object.kind().resource).bind(object.ns()).bind(object.name());
      do_.put.bind(object.uid()).bind(int64_t(object.revision())).bind(object.text(room));
      TRY(do_.put.run());
    } else {
      TRY(do_.drop.bind(row.id).run());
    }
  }
  if (reserve) {
    TRY(do_.mark.bind(int64_t(*reserve)).run());
  }
  return do_.commit.run();
}

Result<void> Disk::commit(const std::vector<Row>& rows, std::optional<Revision> reserve) {
  auto done = write_rows(rows, reserve);
  if (!done) {
    database_.roll_back();
    return done.take_error().wrap("write to the store");
  }
  if (reserve) reserved_ = *reserve;
  return {};
}

Result<void> Disk::mark_clean(Revision revision) { return commit({}, revision); }

std::vector<std::string> Disk::check(const std::function<void(int64_t id, std::string_view text)>& each) {
  std::vector<std::string> findings;
  auto look = [&]() -> Result<void> {
    TRY(database_.execute("PRAGMA shrink_memory"));
    if (raw_) (void)::posix_fadvise(raw_.get(), 0, 0, POSIX_FADV_DONTNEED);  // advice; without it we read what is cached
    Statement check = TRY(database_.prepare("PRAGMA integrity_check(" + std::to_string(kFindingsMax) + ")"));
    for (;;) {
      bool row = TRY(check.step());
      if (!row) break;
      if (check.text(0) != "ok") findings.emplace_back(check.text(0));
    }
    if (!findings.empty()) return {};
    Statement all = TRY(database_.prepare("SELECT id, body FROM objects"));
    for (;;) {
      bool row = TRY(all.step());
      if (!row) return {};
      each(all.integer(0), all.text(1));
    }
  };
  auto done = look();
  if (!done) findings.push_back(done.error().text());
  return findings;
}

Result<Disk::Size> Disk::size() {
  int64_t page = TRY(database_.query_integer("PRAGMA page_size"));
  int64_t pages = TRY(database_.query_integer("PRAGMA page_count"));
  int64_t unused = TRY(database_.query_integer("PRAGMA freelist_count"));
  return Size{uint64_t(page * pages), uint64_t(page * unused)};
}

Result<void> Disk::compact() {
  TRY(database_.execute("VACUUM").wrap("compact the store"));
  return database_.execute("PRAGMA wal_checkpoint(TRUNCATE)").wrap("compact the store");
}

}  // namespace coracle::engine
