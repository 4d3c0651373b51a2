// SPDX-License-Identifier: Apache-2.0
// Writes a tar stream entry by entry to a Sink, and preserves the sink's errors through libarchive. Pax headers are only written
// if a plain header is not sufficient. With Keep::all they are always written, with all times in nanoseconds and attributes. The
// same entries always yield the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/image/archive_handles.h"
#include "runtime/image/utf8_locale.h"

namespace coracle::image {

using Sink = std::function<Result<void>(std::string_view bytes)>;

class TarWriter {
 public:
  enum class Keep : uint8_t { usual, all };
  explicit TarWriter(const Sink& to, Keep keep = Keep::usual);  // `to` must outlive it
  TarWriter(const TarWriter&) = delete;

  // Writes an entry; then write as many bytes of data as its header has. Errors: the sink's; invalid for what a tar stream cannot
  // contain.
  Result<void> add(archive_entry* entry);
  Result<void> data(std::string_view bytes);
  // Adds a text file with a fixed time.
  Result<void> add_text(const std::string& name, std::string_view text);
  Result<void> end();

 private:
  static la_ssize_t write(archive* writer, void* self, const void* bytes, size_t size);
  Error failure(const std::string& doing);

  const Sink& to_;
  Utf8Locale utf8_;
  ArchiveWriter writer_;
  bool open_ = false;
  std::string name_;               // of the current entry
  std::unique_ptr<Error> failed_;  // the error of to_, because libarchive only reports a failure
};

constexpr time_t kArchiveTime = 1'577'836'800;  // 2020-01-01: for entries without a time of their own
// An entry for a generated file, with type, mode, time and size.
ArchiveEntry plain_file(const std::string& name, int64_t size);

}  // namespace coracle::image
