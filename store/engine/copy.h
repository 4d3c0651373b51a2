// SPDX-License-Identifier: Apache-2.0
// Copies of a store: a SQLite file with the objects at one revision, files that belong to them, and a label with a digest
// over both. A copy without files is a valid store: the engine can open it.
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
  CopyLabel label;  // `taken` is "" for a store's own file, which has no label
  std::vector<RestingPtr> objects;
  std::vector<KeptFile> files;
  Revision reserved = 0;               // revisions up to this one must not be used again
  std::shared_ptr<StoredKinds> kinds;  // when read: owns the kinds of the objects
};

// Creates the file, which must not exist. Does not sync it. Errors: the disk's.
Result<void> write_copy(const std::string& path, const Copy& copy);
// Reads and verifies a copy or a store's own file: SQLite's integrity check, the layout, the tables, the digest, and every
// object's text. Errors: invalid, with a reason that is worded to follow the file's name.
Result<Copy> read_copy(const std::string& path, FindKind find_kind);
// Creates a store with these objects. They get new revisions above `above`, in the order of their old ones. The file is synced on
// return. `path` must not exist. Errors: the disk's.
Result<void> write_store(const std::string& path, const std::vector<RestingPtr>& objects, Revision above);

}  // namespace coracle::engine
