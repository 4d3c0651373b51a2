// SPDX-License-Identifier: Apache-2.0
// See layout.h.
#include "store/engine/layout.h"

namespace coracle::engine {
namespace {

constexpr const char* kTables =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE objects(id INTEGER PRIMARY KEY, grp TEXT NOT NULL, resource TEXT NOT NULL, ns TEXT NOT NULL,"
    " name TEXT NOT NULL, uid TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL);"
    "CREATE TABLE marks(id INTEGER PRIMARY KEY, reserved INTEGER NOT NULL);"
    "INSERT INTO marks VALUES(1, 0);"
    "PRAGMA application_id=1131377251; PRAGMA user_version=1;"
    "COMMIT;";
static_assert(kApplicationId == 1131377251);

}  // namespace

Error damaged(std::string text) {
  ErrorDetails details;
  details.reason = kDamaged;
  return Error(Code::internal, std::move(text)).with(std::move(details));
}

Result<void> make_tables(Database& database) { return database.execute(kTables); }

Result<void> check_layout(Database& database, bool thorough) {
  int64_t application = TRY(database.query_integer("PRAGMA application_id"));
  int64_t layout = TRY(database.query_integer("PRAGMA user_version"));
  if (application != kApplicationId) return Error(Code::internal, "is a database, but not Coracle's");
  if (layout != kLayout)
    return Error(Code::internal,
                 "has layout " + std::to_string(layout) + "; this version of Coracle reads layout " + std::to_string(kLayout));
  std::string check = TRY(database.query_text(thorough ? "PRAGMA integrity_check(1)" : "PRAGMA quick_check(1)"));
  if (check != "ok") return damaged(check);
  return {};
}

}  // namespace coracle::engine
