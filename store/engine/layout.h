// SPDX-License-Identifier: Apache-2.0
// The layout of a store file: its tables, and how one knows that a file is one of ours and whole. Shared by the engine's
// own file (disk.h) and the copies of it (copy.h).
#pragma once

#include "store/engine/sqlite.h"

namespace coracle::engine {

inline constexpr int64_t kApplicationId = 0x436f7263;  // "Corc" in the file's header
inline constexpr int64_t kLayout = 1;

Error damaged(std::string text);  // internal, with reason kDamaged

// Makes the tables in a file that has none yet.
Result<void> make_tables(Database& database);
// Errors: internal when the file is not Coracle's, or of a newer layout; with reason kDamaged when SQLite finds it damaged.
// `thorough`: every page and the order of every row, instead of the quick look that a start can afford.
Result<void> check_layout(Database& database, bool thorough);

}  // namespace coracle::engine
