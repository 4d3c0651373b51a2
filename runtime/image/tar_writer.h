// SPDX-License-Identifier: Apache-2.0
// A tar stream written entry by entry to a Sink, with the sink's own errors kept whole on their way through libarchive. Pax
// headers stand only where a plain one does not do, unless all is to be kept: then all times are there, to the nanosecond, and
// attributes. The same entries give the same bytes, whenever they are written.
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

  // An entry; then as many bytes of data as its header says. Errors: the sink's; invalid for what a tar stream cannot hold.
  Result<void> add(archive_entry* entry);
  Result<void> data(std::string_view bytes);
  // A file of text, with a time that does not change.
  Result<void> add_text(const std::string& name, std::string_view text);
  Result<void> end();

 private:
  static la_ssize_t write(archive* writer, void* self, const void* bytes, size_t size);
  Error failure(const std::string& doing);

  const Sink& to_;
  Utf8Locale utf8_;
  ArchiveWriter writer_;
  bool open_ = false;
  std::string name_;               // of the entry
  std::unique_ptr<Error> failed_;  // of to_, while the library only knows "an error"
};

constexpr time_t kArchiveTime = 1'577'836'800;  // 2020-01-01: of what has no time of its own
// What is the same of every file that we make up ourselves: its type, mode, time and size.
ArchiveEntry plain_file(const std::string& name, int64_t size);

}  // namespace coracle::image
