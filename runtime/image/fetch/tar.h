// SPDX-License-Identifier: Apache-2.0
// Reads a tar stream from a Source entry by entry, and preserves the source's errors through libarchive. As lenient as Go's
// reader: the padding of the last entry and the end-of-archive blocks may be missing.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "runtime/base/result.h"
#include "runtime/image/fetch/source.h"
#include "runtime/image/utf8_locale.h"

namespace coracle::image {

class TarReader {
 public:
  explicit TarReader(Source& from);
  ~TarReader();
  TarReader(const TarReader&) = delete;

  // The next entry, valid until the next call; nullptr at the end. Errors: invalid for damaged streams; the source's.
  Result<archive_entry*> next();
  struct Piece {
    std::string_view bytes;
    int64_t offset = 0;
  };
  // The next piece of the entry's data; empty at its end. Holes are skipped.
  Result<Piece> data();
  // After the last entry: the length in bytes of all entries. The end-of-archive blocks follow.
  int64_t entries_end() const { return entries_end_; }

 private:
  static la_ssize_t read(archive* reader, void* self, const void** bytes);
  Error failure();
  bool lacks_padding() const;

  Source& from_;
  archive* reader_;
  bool open_ = false, over_ = false;
  int64_t entry_size_ = 0, entry_left_ = 0;  // size of its data, and the part that was not returned yet
  int64_t read_ = 0;                         // bytes read from the source
  int64_t entries_end_ = 0;
  bool source_ended_ = false;
  std::unique_ptr<Error> failed_;  // the error of from_, because libarchive only reports a failure
  Utf8Locale utf8_;
};

}  // namespace coracle::image
