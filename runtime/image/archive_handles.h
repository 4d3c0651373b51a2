// SPDX-License-Identifier: Apache-2.0
// Owners of libarchive's handles, and its errors as Error: shared by packing and exporting images and by copying files. Source:
// libarchive(3).
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/image/libarchive.h"

namespace coracle {

struct WriteEnd {
  void operator()(archive* a) const { archive_write_free(a); }
};
struct ReadEnd {
  void operator()(archive* a) const { archive_read_free(a); }
};
struct EntryEnd {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};
using ArchiveWriter = std::unique_ptr<archive, WriteEnd>;
using ArchiveReader = std::unique_ptr<archive, ReadEnd>;
using ArchiveEntry = std::unique_ptr<archive_entry, EntryEnd>;

// The error of the last call on the handle. `doing` names the failed operation: "write the layer".
inline Error archive_failed(archive* from, const std::string& doing) {
  const char* text = archive_error_string(from);
  return Error(Code::internal, doing + ": " + (text ? text : "unknown error"));
}

}  // namespace coracle
