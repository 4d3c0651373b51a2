// SPDX-License-Identifier: Apache-2.0
// SQLite with Result: a connection and its prepared statements, closed by their owners. Not thread-safe. Errors: internal with
// reason kDamaged if the file is damaged or not a database; unavailable if it is locked or the disk is full or read-only (then
// with err() ENOSPC or EROFS); errno's codes for failed system calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace coracle::engine {

inline constexpr std::string_view kDamaged = "StoreDamaged";  // value of Error's details().reason

// The disk is full or read-only; later writes may succeed.
bool disk_takes_nothing(const Error& why);

class Statement {
 public:
  // Binds the next parameter. The value must stay valid until the statement has run.
  Statement& bind(int64_t value);
  Statement& bind(std::string_view text);

  Result<bool> step();  // true: a row is available
  Result<void> run();   // runs to the end and resets the statement
  int64_t integer(int column) const;
  std::string_view text(int column) const;  // valid until the next step

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

class Database {
 public:
  static Result<Database> open(const std::string& path, const char* vfs);
  // Reads the file without its log and without locks, for as long as nobody changes it.
  static Result<Database> open_unchanging(const std::string& path, const char* vfs);
  Result<void> execute(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  Result<int64_t> query_integer(std::string_view sql);  // the first column of the first row
  Result<std::string> query_text(std::string_view sql);
  void roll_back();       // if a transaction is open
  void release_memory();  // the page cache
  // From now on, the pages in the log after each commit are counted in `pages`, and SQLite does not write them into the file by
  // itself. `pages` must outlive the database.
  void count_log(int& pages);

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  explicit Database(sqlite3* handle) : handle_(handle) {}
  static Result<Database> open(const std::string& path, const char* vfs, int flags);
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace coracle::engine
