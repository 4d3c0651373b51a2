// SPDX-License-Identifier: Apache-2.0
// See tar.h.
#include "runtime/image/fetch/tar.h"

#include <algorithm>

namespace coracle::image {

TarReader::TarReader(Source& from) : from_(from), reader_(archive_read_new()) {
  archive_read_support_format_tar(reader_);
  archive_read_support_format_empty(reader_);
}

TarReader::~TarReader() { archive_read_free(reader_); }

la_ssize_t TarReader::read(archive* reader, void* self, const void** bytes) {
  auto& tar = *static_cast<TarReader*>(self);
  auto piece = tar.from_.next();
  if (!piece) {
    tar.failed_ = std::make_unique<Error>(piece.take_error());
    archive_set_error(reader, EIO, "source failed");
    return -1;
  }
  tar.read_ += int64_t(piece->size());
  tar.source_ended_ = piece->empty();
  *bytes = piece->data();
  return la_ssize_t(piece->size());
}

// True if the stream ends in the middle of a block, after all data of the entry.
bool TarReader::lacks_padding() const {
  constexpr int64_t kBlock = 512;
  return source_ended_ && entry_left_ == 0 && read_ % kBlock != 0;
}

Error TarReader::failure() {
  if (failed_) return std::move(*failed_);
  const char* why = archive_error_string(reader_);
  return Error(Code::invalid, std::string("not a good tar stream: ") + (why ? why : "damaged"));
}

Result<archive_entry*> TarReader::next() {
  if (!open_ && archive_read_open(reader_, this, nullptr, read, nullptr) != ARCHIVE_OK) return failure();
  open_ = true;
  archive_entry* entry = nullptr;
  int status = over_ ? ARCHIVE_EOF : archive_read_next_header(reader_, &entry);
  entries_end_ = over_ || status != ARCHIVE_EOF ? read_ : archive_read_header_position(reader_);
  if (!failed_ && status < ARCHIVE_WARN && lacks_padding()) status = ARCHIVE_EOF;
  if (failed_ || (status < ARCHIVE_WARN && status != ARCHIVE_EOF)) return failure();
  if (status == ARCHIVE_EOF) return nullptr;
  entry_size_ = entry_left_ = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;
  return entry;
}

Result<TarReader::Piece> TarReader::data() {
  const void* bytes = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  int status = ARCHIVE_OK;
  while (status == ARCHIVE_OK && size == 0) status = archive_read_data_block(reader_, &bytes, &size, &offset);
  if (!failed_ && status < ARCHIVE_WARN && lacks_padding()) over_ = true, status = ARCHIVE_EOF;
  if (failed_ || status < ARCHIVE_WARN) return failure();
  if (status == ARCHIVE_EOF) return Piece{};
  entry_left_ = std::max<int64_t>(entry_size_ - int64_t(offset) - int64_t(size), 0);
  return Piece{std::string_view(static_cast<const char*>(bytes), size), offset};
}

}  // namespace coracle::image
