// SPDX-License-Identifier: Apache-2.0
// Copies of a store: one SQLite file that holds the objects as they were at one revision, files that belong to them, and a
// label with a digest over both. A copy without its files is a store: the engine opens it as it is.
//   Engine::snapshot ─▶ write_copy ─▶ file ─▶ read_copy ─▶ objects, files ─▶ write_store
// Everything blocks on the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "store/engine/kinds.h"
#include "store/object/object_ptr.h"

namespace coracle::engine {

struct KeptFile {
  std::string name;  // without a directory
  std::string content;
};

struct CopyLabel {
  std::string taken;    // RFC 3339
  std::string version;  // of Coracle
  std::string node;
  Revision revision = 0;
};

struct Copy {
  CopyLabel label;  // `taken` is "" for a store's own file: it bears no label
  std::vector<RestingPtr> objects;
  std::vector<KeptFile> files;
  Revision reserved = 0;               // no revision up to this one may be used again
  std::shared_ptr<StoredKinds> kinds;  // what the objects' kinds live in, when read
};

// Makes the file, which must not exist. It is not forced to the disk.
Result<void> write_copy(const std::string& path, const Copy& copy);
// Reads a copy, or a store's own file, and checks all of it: SQLite's own check, the layout, the tables, the digest, every
// object's text. Errors: invalid, saying what is wrong in words that follow the file's name.
Result<Copy> read_copy(const std::string& path, FindKind find_kind);
// Makes a store of these objects, which get the revisions above `above`, in the order of those they had; on the disk when it
// returns. `path` must not exist. Errors: the disk's.
Result<void> write_store(const std::string& path, const std::vector<RestingPtr>& objects, Revision above);

}  // namespace coracle::engine
