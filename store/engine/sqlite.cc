// SPDX-License-Identifier: Apache-2.0
// SQLite with Result. See sqlite.h.
#include "store/engine/sqlite.h"

#include <sqlite3.h>

#include <cerrno>

namespace coracle::engine {
namespace {

Error disk_refuses(int err, std::string_view doing) { return Error::from_errno(err, doing).as(Code::unavailable); }

// The errno of a failed read or write, which SQLite stores per file: the log or the database. 0: unknown.
int file_errno(sqlite3* handle) {
  int err = 0;
  sqlite3_file* log = nullptr;
  (void)sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log && log->pMethods) (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &err);
  if (!err) (void)sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &err);
  return err;
}

Error error_of(sqlite3* handle, std::string_view doing) {
  int code = handle ? sqlite3_errcode(handle) & 0xff : SQLITE_NOMEM;
  int err = handle ? sqlite3_system_errno(handle) : 0;
  if (code == SQLITE_IOERR && !err) err = file_errno(handle);
  std::string text = std::string(doing) + ": " + (handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code));
  switch (code) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: {
      ErrorDetails details;
      details.reason = kDamaged;
      return Error(Code::internal, text).with(std::move(details));
    }
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Error(Code::unavailable, text + ": another process uses it");
    case SQLITE_FULL: return disk_refuses(ENOSPC, doing);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      if (err == ENOSPC || err == EDQUOT) return disk_refuses(ENOSPC, doing);
      if (err == EROFS) return disk_refuses(EROFS, doing);
      if (err) return Error::from_errno(err, text);
      return Error(code == SQLITE_READONLY ? Code::forbidden : Code::internal, text);
    default: return Error(Code::internal, text);
  }
}

}  // namespace

bool disk_takes_nothing(const Error& why) { return why.err() == ENOSPC || why.err() == EROFS; }

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Statement& Statement::bind(int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  sqlite3_bind_text64(statement_.get(), ++bound_, text.data() ? text.data() : "", text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Result<bool> Statement::step() {
  int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  Result<bool> outcome(false);
  if (code != SQLITE_DONE) outcome = error_of(sqlite3_db_handle(statement_.get()), "SQLite");
  bound_ = 0;
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  return outcome;
}

Result<void> Statement::run() {
  for (;;) {
    bool row = TRY(step());
    if (!row) return {};
  }
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::string_view Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  return bytes ? std::string_view(static_cast<const char*>(bytes), size_t(sqlite3_column_bytes(statement_.get(), column)))
               : std::string_view();
}

Result<Database> Database::open(const std::string& path, const char* vfs, int flags) {
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs);
  Database database(handle);
  if (code != SQLITE_OK) return error_of(handle, path);
  return database;
}

Result<Database> Database::open(const std::string& path, const char* vfs) {
  return open(path, vfs, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Result<Database> Database::open_unchanging(const std::string& path, const char* vfs) {
  std::string uri = "file:";
  for (char c : path) {
    if (c == '%') uri += "%25";
    else if (c == '?') uri += "%3f";
    else if (c == '#') uri += "%23";
    else uri += c;
  }
  return open(uri + "?immutable=1", vfs, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

Result<void> Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return error_of(handle_.get(), "SQLite");
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(handle_.get(), sql.data(), int(sql.size()), SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK)
    return error_of(handle_.get(), "SQLite");
  return Statement(statement);
}

Result<int64_t> Database::query_integer(std::string_view sql) {
  Statement statement = TRY(prepare(sql));
  bool row = TRY(statement.step());
  return row ? statement.integer(0) : 0;
}

Result<std::string> Database::query_text(std::string_view sql) {
  Statement statement = TRY(prepare(sql));
  bool row = TRY(statement.step());
  return row ? std::string(statement.text(0)) : std::string();
}

void Database::roll_back() {
  if (!sqlite3_get_autocommit(handle_.get())) sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Database::count_log(int& pages) {
  auto count = [](void* to, sqlite3*, const char*, int now) { return *static_cast<int*>(to) = now, SQLITE_OK; };
  (void)sqlite3_wal_hook(handle_.get(), count, &pages);  // replaces the automatic checkpoint, which is such a hook
}

void Database::release_memory() { (void)sqlite3_db_release_memory(handle_.get()); }  // cannot fail

}  // namespace coracle::engine
