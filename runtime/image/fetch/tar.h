// SPDX-License-Identifier: Apache-2.0
// A tar stream read entry by entry from a Source, with the source's own errors kept whole on their way through libarchive. What
// Go's reader takes is taken: the last entry's padding may be missing, and the blocks that mark the end.
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
  // After the last entry: how many bytes of the stream the entries take. What marks the end of a tar stream comes then.
  int64_t entries_end() const { return entries_end_; }

 private:
  static la_ssize_t read(archive* reader, void* self, const void** bytes);
  Error failure();
  bool lacks_padding() const;

  Source& from_;
  archive* reader_;
  bool open_ = false, over_ = false;
  int64_t entry_size_ = 0, entry_left_ = 0;  // of its data, and what was not handed out yet
  int64_t read_ = 0;                         // bytes from the source
  int64_t entries_end_ = 0;
  bool source_ended_ = false;
  std::unique_ptr<Error> failed_;  // of from_, while the library only knows "an error"
  Utf8Locale utf8_;
};

}  // namespace coracle::image
