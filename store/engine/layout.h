// SPDX-License-Identifier: Apache-2.0
// The layout of a store file: its tables, and the check that a file is a valid store. Shared by the engine's file (disk.h) and
// its copies (copy.h).
#pragma once

#include "store/engine/sqlite.h"

namespace coracle::engine {

inline constexpr int64_t kApplicationId = 0x436f7263;  // "Corc" in the file's header
inline constexpr int64_t kLayout = 1;

Error damaged(std::string text);  // internal, with reason kDamaged

// Creates the tables in a new file. Errors: the disk's.
Result<void> make_tables(Database& database);
// Errors: internal if the file is not Coracle's or has a newer layout; with reason kDamaged if SQLite finds damage. `thorough`:
// checks every page and the order of all rows; otherwise only a quick check for the start.
Result<void> check_layout(Database& database, bool thorough);

}  // namespace coracle::engine
