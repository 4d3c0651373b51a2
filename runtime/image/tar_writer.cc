// SPDX-License-Identifier: Apache-2.0
// See tar_writer.h.
#include "runtime/image/tar_writer.h"

#include <cerrno>

namespace coracle::image {

TarWriter::TarWriter(const Sink& to, Keep keep) : to_(to), writer_(archive_write_new()) {
  if (keep == Keep::usual) {
    archive_write_set_format_pax_restricted(writer_.get());
    return;
  }
  archive_write_set_format_pax(writer_.get());
  (void)archive_write_set_format_option(writer_.get(), "pax", "xattrheader", "SCHILY");  // in GNU tar's format
}

la_ssize_t TarWriter::write(archive* writer, void* self, const void* bytes, size_t size) {
  auto& tar = *static_cast<TarWriter*>(self);
  auto written = tar.to_(std::string_view(static_cast<const char*>(bytes), size));
  if (written) return la_ssize_t(size);
  tar.failed_ = std::make_unique<Error>(written.take_error());
  archive_set_error(writer, EIO, "the sink failed");
  return -1;
}

Error TarWriter::failure(const std::string& doing) {
  if (failed_) return std::move(*failed_);
  return archive_failed(writer_.get(), doing);
}

Result<void> TarWriter::add(archive_entry* entry) {
  if (!open_ && archive_write_open(writer_.get(), this, nullptr, write, nullptr) != ARCHIVE_OK)
    return failure("write a tar stream");
  open_ = true;
  const char* name = archive_entry_pathname(entry);
  name_ = name ? name : "";
  if (archive_write_header(writer_.get(), entry) < ARCHIVE_WARN) return failure("write " + name_);
  return {};
}

Result<void> TarWriter::data(std::string_view bytes) {
  la_ssize_t written = archive_write_data(writer_.get(), bytes.data(), bytes.size());
  if (written < 0) return failure("write " + name_);
  if (size_t(written) != bytes.size()) return Error(Code::conflict, name_ + " is longer than its header says");
  return {};
}

Result<void> TarWriter::add_text(const std::string& name, std::string_view text) {
  ArchiveEntry entry = plain_file(name, int64_t(text.size()));
  TRY(add(entry.get()));
  return data(text);
}

Result<void> TarWriter::end() {
  if (!open_ && archive_write_open(writer_.get(), this, nullptr, write, nullptr) != ARCHIVE_OK)
    return failure("write a tar stream");
  open_ = true;
  if (archive_write_close(writer_.get()) != ARCHIVE_OK) return failure("end a tar stream");
  return {};
}

ArchiveEntry plain_file(const std::string& name, int64_t size) {
  ArchiveEntry entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_mtime(entry.get(), kArchiveTime, 0);
  archive_entry_set_size(entry.get(), size);
  return entry;
}

}  // namespace coracle::image
