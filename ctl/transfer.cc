// SPDX-License-Identifier: Apache-2.0
// See transfer.h.
#include "ctl/transfer.h"

#include "ctl/escape.h"
#include "runtime/base/text.h"
#include "runtime/image/archive_handles.h"

namespace coracle::ctl {
namespace {

constexpr size_t kBlock = 64 << 10;

Result<void> copy_data(archive* from, archive* to, const std::string& name) {
  char buffer[kBlock];
  for (;;) {
    la_ssize_t got = archive_read_data(from, buffer, sizeof buffer);
    if (got == 0) return {};
    if (got < 0) return archive_failed(from, "read " + name);
    if (archive_write_data(to, buffer, size_t(got)) < 0) return archive_failed(to, "write " + name);
  }
}

// "dir/a/b" under `target`: "target/a/b". Errors: forbidden when the path leads out of `target`.
Result<std::string> placed(std::string_view name, const std::string& target) {
  std::string path = target;
  bool first = true;
  for (std::string_view part : split(name, '/')) {
    if (part.empty() || (part == "." && !first)) continue;
    if (part == "..")
      return Error(Code::forbidden, "the container sent the name " + coracle::quoted(name) + ", which leads out of " + target);
    if (!std::exchange(first, false)) path.append("/").append(part);
  }
  return path;
}

}  // namespace

Result<Place> parse_place(std::string_view text) {
  Place place;
  size_t colon = text.find(':');
  if (text.empty()) return Error(Code::bad_request, "an empty path");
  if (text.front() == '/' || text.front() == '.' || colon == text.npos) {
    place.path = text;
    return place;
  }
  std::string_view pod = text.substr(0, colon);
  place.path = text.substr(colon + 1);
  size_t slash = pod.find('/');
  if (slash != pod.npos) place.ns = pod.substr(0, slash), pod.remove_prefix(slash + 1);
  place.pod = pod;
  if (place.pod.empty() || pod.find('/') != pod.npos || (slash == 0))
    return Error(Code::bad_request, "expected POD:PATH or NAMESPACE/POD:PATH, got " + coracle::quoted(text));
  if (place.path.empty()) return Error(Code::bad_request, "filepath can not be empty");
  return place;
}

std::pair<std::string, std::string> split_path(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path == "/") return {"/", "."};
  size_t slash = path.rfind('/');
  if (slash == path.npos) return {".", std::string(path)};
  return {slash == 0 ? "/" : std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

Result<void> send_tree(const std::string& path, const std::string& name, int fd) {
  TRY(load_libarchive());
  ArchiveReader disk(archive_read_disk_new());
  archive_read_disk_set_symlink_hybrid(disk.get());  // follows a named link, keeps links below it
  archive_read_disk_set_behavior(disk.get(), ARCHIVE_READDISK_NO_FFLAGS | ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_ACL);
  if (archive_read_disk_open(disk.get(), path.c_str()) != ARCHIVE_OK) return archive_failed(disk.get(), "open " + path);
  ArchiveWriter tar(archive_write_new());
  archive_write_set_format_gnutar(tar.get());  // every tar in a container reads it, long names included
  archive_write_set_bytes_per_block(tar.get(), kBlock);
  archive_write_set_bytes_in_last_block(tar.get(), 1);
  if (archive_write_open_fd(tar.get(), fd) != ARCHIVE_OK) return archive_failed(tar.get(), "write");
  for (;;) {
    ArchiveEntry entry(archive_entry_new());
    int got = archive_read_next_header2(disk.get(), entry.get());
    if (got == ARCHIVE_EOF) break;
    if (got < ARCHIVE_WARN) return archive_failed(disk.get(), "read " + path);
    archive_read_disk_descend(disk.get());
    std::string source = archive_entry_pathname(entry.get());
    std::string below = source.substr(std::min(source.size(), path.size()));
    while (below.starts_with('/')) below.erase(0, 1);
    archive_entry_set_pathname(entry.get(), (below.empty() ? name : name + "/" + below).c_str());
    mode_t type = archive_entry_filetype(entry.get());
    if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK) continue;  // sockets and devices have no content
    archive_entry_set_hardlink(entry.get(), nullptr);
    if (archive_write_header(tar.get(), entry.get()) < ARCHIVE_WARN) return archive_failed(tar.get(), "write " + source);
    if (type == AE_IFREG) TRY(copy_data(disk.get(), tar.get(), source));
  }
  if (archive_write_close(tar.get()) != ARCHIVE_OK) return archive_failed(tar.get(), "write");
  return {};
}

Result<void> receive_tree(int fd, const std::string& target, bool keep_modes) {
  TRY(load_libarchive());
  ArchiveReader tar(archive_read_new());
  archive_read_support_format_tar(tar.get());
  archive_read_support_format_gnutar(tar.get());
  if (archive_read_open_fd(tar.get(), fd, kBlock) != ARCHIVE_OK)
    return archive_failed(tar.get(), "what the container's tar sent");
  ArchiveWriter disk(archive_write_disk_new());
  int flags = ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_UNLINK;
  archive_write_disk_set_options(disk.get(), flags | (keep_modes ? ARCHIVE_EXTRACT_PERM : 0));
  // The target's own parents are trusted and may be links. Below the target, nothing is written through a link.
  std::string parent = split_path(target).first;
  char* real = ::realpath(parent.c_str(), nullptr);
  if (!real) return Error::from_errno("open " + parent);
  std::string base = std::string(real) + "/" + split_path(target).second;
  std::free(real);
  bool any = false;
  for (archive_entry* entry = nullptr;;) {
    int got = archive_read_next_header(tar.get(), &entry);
    if (got == ARCHIVE_EOF) break;
    if (got < ARCHIVE_WARN) return archive_failed(tar.get(), "what the container's tar sent");
    std::string name = archive_entry_pathname(entry);
    std::string path = TRY(placed(name, base));
    archive_entry_set_pathname(entry, path.c_str());
    if (const char* link = archive_entry_hardlink(entry)) {
      std::string linked = TRY(placed(link, base));
      archive_entry_set_hardlink(entry, linked.c_str());
    }
    mode_t type = archive_entry_filetype(entry);
    if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK && !archive_entry_hardlink(entry)) {
      std::fprintf(stderr, "Warning: %s is neither file, directory nor link: left out\n", visible_line(name).c_str());
      continue;
    }
    archive_entry_set_perm(entry, archive_entry_perm(entry) & 0777);  // drops setuid and setgid
    if (archive_write_header(disk.get(), entry) < ARCHIVE_WARN) return archive_failed(disk.get(), "write " + path);
    if (archive_entry_size(entry) > 0) TRY(copy_data(tar.get(), disk.get(), path));
    if (archive_write_finish_entry(disk.get()) < ARCHIVE_WARN) return archive_failed(disk.get(), "write " + path);
    any = true;
  }
  if (archive_write_close(disk.get()) < ARCHIVE_WARN) return archive_failed(disk.get(), "write " + target);
  if (!any) return Error(Code::not_found, "the container sent nothing");
  return {};
}

}  // namespace coracle::ctl
