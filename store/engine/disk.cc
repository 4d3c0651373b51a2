// SPDX-License-Identifier: Apache-2.0
// Disk. See disk.h. Rows are found by number alone (memory knows the names), so there is no index to write beside the table;
// a table with row numbers, because one WITHOUT ROWID writes more than twice as much.
#include "store/engine/disk.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/base/clock.h"
#include "runtime/base/text.h"

namespace coracle::engine {
namespace {

constexpr int64_t kApplicationId = 0x436f7263;  // "Corc" in the file's header
constexpr int64_t kLayout = 1;

// EXCLUSIVE: nobody else reads the file, so the log's index needs no shared memory and a second daemon is refused.
// The log is folded back into the file every 1000 pages and cut to 4 MiB: it cannot grow without limit.
constexpr const char* kSettings =
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL; PRAGMA cache_size=-128; PRAGMA mmap_size=0;"
    "PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=1000; PRAGMA journal_size_limit=4194304;"
    "PRAGMA trusted_schema=OFF;";

constexpr const char* kTables =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE objects(id INTEGER PRIMARY KEY, grp TEXT NOT NULL, resource TEXT NOT NULL, ns TEXT NOT NULL,"
    " name TEXT NOT NULL, uid TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL);"
    "CREATE TABLE marks(id INTEGER PRIMARY KEY, reserved INTEGER NOT NULL);"
    "INSERT INTO marks VALUES(1, 0);"
    "PRAGMA application_id=1131377251; PRAGMA user_version=1;"
    "COMMIT;";
static_assert(kApplicationId == 1131377251);

Error damaged(std::string text) {
  ErrorDetails details;
  details.reason = kDamaged;
  return Error(Code::internal, std::move(text)).with(std::move(details));
}

// Makes the tables in a new file; refuses files that are not ours or newer than we are.
Result<void> prepare_file(Database& database) {
  TRY(database.execute(kSettings));
  std::string mode = TRY(database.query_text("PRAGMA journal_mode=WAL"));
  if (mode != "wal") return Error(Code::unsupported, "the file system refuses SQLite's write-ahead log (mode " + mode + ")");
  int64_t tables = TRY(database.query_integer("SELECT count(*) FROM sqlite_schema"));
  int64_t application = TRY(database.query_integer("PRAGMA application_id"));
  int64_t layout = TRY(database.query_integer("PRAGMA user_version"));
  if (tables == 0 && application == 0) return database.execute(kTables);
  if (application != kApplicationId) return Error(Code::internal, "is a database, but not Coracle's");
  if (layout != kLayout)
    return Error(Code::internal, "has layout " + std::to_string(layout) + "; this version of Coracle reads layout " +
                                     std::to_string(kLayout));
  std::string check = TRY(database.query_text("PRAGMA quick_check(1)"));
  if (check != "ok") return damaged(check);
  return {};
}

}  // namespace

Disk::Disk(Database database, Statement put, Statement drop, Statement mark)
    : database_(std::move(database)), put_(std::move(put)), drop_(std::move(drop)), mark_(std::move(mark)) {}

Result<std::unique_ptr<Disk>> Disk::open(const std::string& path, const char* vfs) {
  Database database = TRY(Database::open(path, vfs));
  // The directory is private to us, and so are the files: the log and its index take over the mode of the first.
  std::error_code ignored;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, ignored);
  TRY(prepare_file(database).wrap(path));
  Statement put = TRY(database.prepare("INSERT OR REPLACE INTO objects VALUES(?,?,?,?,?,?,?,?)").wrap(path));
  Statement drop = TRY(database.prepare("DELETE FROM objects WHERE id=?").wrap(path));
  Statement mark = TRY(database.prepare("UPDATE marks SET reserved=? WHERE id=1").wrap(path));
  std::unique_ptr<Disk> disk(new Disk(std::move(database), std::move(put), std::move(drop), std::move(mark)));
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

Result<std::vector<Row>> Disk::load(const FindKind& find_kind) {
  Statement all = TRY(database_.prepare("SELECT id, grp, resource, ns, name, uid, revision, body FROM objects"));
  std::vector<Row> rows;
  std::set<std::pair<const Kind*, Key>> seen;
  for (;;) {
    bool row = TRY(all.step());
    if (!row) return rows;
    Key key{std::string(all.text(3)), std::string(all.text(4))};
    const Kind* kind = find_kind(all.text(1), all.text(2), !key.ns.empty(), all.text(7));
    if (!seen.insert({kind, key}).second) return damaged(kind->qualified_resource() + " " + key.text() + " is there twice");
    auto object = Object::from_text(*kind, key, Revision(all.integer(6)), std::string(all.text(5)), std::string(all.text(7)));
    if (!object) return damaged(object.error().text());
    reserved_ = std::max(reserved_, (*object)->revision());
    rows.push_back({all.integer(0), *std::move(object)});
  }
}

Result<void> Disk::write_rows(const std::vector<Row>& rows, std::optional<Revision> reserve) {
  TRY(database_.execute("BEGIN IMMEDIATE"));
  for (const Row& row : rows) {
    if (row.object) {
      const Object& object = *row.object;
      put_.bind(row.id).bind(object.kind().group).bind(object.kind().resource).bind(object.ns()).bind(object.name());
      put_.bind(object.uid()).bind(int64_t(object.revision())).bind(object.text());
      TRY(put_.run());
    } else {
      TRY(drop_.bind(row.id).run());
    }
  }
  if (reserve) {
    TRY(mark_.bind(int64_t(*reserve)).run());
  }
  return database_.execute("COMMIT");
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

}  // namespace coracle::engine
