// SPDX-License-Identifier: Apache-2.0
// See source.h. Decompression uses libarchive's "raw" format with its filters.
#include "runtime/image/fetch/source.h"

#include <archive.h>
#include <archive_entry.h>

#include "runtime/sys/file.h"

namespace coracle::image {
namespace {

constexpr size_t kPiece = 64 << 10;

}  // namespace

struct Feed {  // libarchive's read callback
  static la_ssize_t read(archive* reader, void* self, const void** bytes) {
    auto& source = *static_cast<DecompressingSource*>(self);
    auto piece = source.from_.next();
    if (!piece) {
      source.failed_ = std::make_unique<Error>(piece.take_error());
      archive_set_error(reader, EIO, "source failed");
      return -1;
    }
    *bytes = piece->data();
    return la_ssize_t(piece->size());
  }
};

Result<void> Source::drain() {
  for (;;) {
    std::string_view piece = TRY(next());
    if (piece.empty()) return {};
  }
}

Result<std::string_view> FileSource::next() {
  if (!buffer_) buffer_ = std::make_unique<char[]>(kPiece);
  size_t count = TRY(sys::read_some(fd_, {buffer_.get(), kPiece}));
  return std::string_view(buffer_.get(), count);
}

Result<std::string_view> HashingSource::next() {
  std::string_view piece = TRY(from_.next());
  size_ += int64_t(piece.size());
  if (size_ > max_) return Error(Code::too_large, "more than " + std::to_string(max_) + " bytes");
  sha_.update(piece);
  return piece;
}

DecompressingSource::~DecompressingSource() {
  if (archive_) archive_read_free(archive_);
}

Error DecompressingSource::failure() {
  ended_ = true;  // libarchive's state is invalid now
  if (failed_) return std::move(*failed_);
  const char* why = archive_error_string(archive_);
  return Error(Code::invalid, std::string("decompress: ") + (why ? why : "damaged stream"));
}

Result<void> DecompressingSource::open() {
  archive_ = archive_read_new();
  archive_read_support_filter_gzip(archive_);
  archive_read_support_filter_zstd(archive_);
  archive_read_support_filter_xz(archive_);
  archive_read_support_filter_bzip2(archive_);
  archive_read_support_filter_lz4(archive_);
  archive_read_support_format_raw(archive_);
  archive_read_support_format_empty(archive_);
  archive_entry* entry = nullptr;
  int status = archive_read_open(archive_, this, nullptr, Feed::read, nullptr);
  if (status == ARCHIVE_OK) status = archive_read_next_header(archive_, &entry);
  if (failed_ || (status < ARCHIVE_WARN && status != ARCHIVE_EOF)) return failure();
  ended_ = status == ARCHIVE_EOF;
  return {};
}

Result<std::string_view> DecompressingSource::next() {
  if (!archive_) TRY(open());
  const void* bytes = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  while (!ended_ && size == 0) {
    int status = archive_read_data_block(archive_, &bytes, &size, &offset);
    if (failed_ || status < ARCHIVE_WARN) return failure();
    if (status == ARCHIVE_EOF) return ended_ = true, std::string_view();
  }
  return std::string_view(static_cast<const char*>(bytes), size);
}

}  // namespace coracle::image
