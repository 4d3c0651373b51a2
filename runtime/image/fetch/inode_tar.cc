// SPDX-License-Identifier: Apache-2.0
// See inode_tar.h. libarchive expects the zeros of a hole too, and omits them itself.
#include "runtime/image/fetch/inode_tar.h"

#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"

namespace coracle::image {
namespace {

// The metadata of an entry without its contents: type, owner, mode.
ArchiveEntry header(const std::string& name, const struct stat& info) {
  ArchiveEntry entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), info.st_mode & S_IFMT);
  archive_entry_set_perm(entry.get(), info.st_mode & 07777);
  archive_entry_set_uid(entry.get(), info.st_uid);
  archive_entry_set_gid(entry.get(), info.st_gid);
  archive_entry_set_mtime(entry.get(), info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  return entry;
}

}  // namespace

Result<void> InodeTar::add_attributes(archive_entry* entry, const Fd& object) {
  auto names = sys::list_attributes(object);
  if (!names && names.error().code() == Code::unsupported) return {};  // not supported by the file system
  if (!names) return names.take_error();
  for (const std::string& name : *names) {
    if (!choice_.attribute(name)) continue;
    std::string value = TRY(sys::get_attribute(object, name));
    archive_entry_xattr_add_entry(entry, name.c_str(), value.data(), value.size());
  }
  return {};
}

Result<bool> InodeTar::add_link(archive_entry* entry, const std::string& name, const struct stat& info) {
  if (info.st_nlink < 2) return false;
  auto [first, is_first] = links_.emplace(info.st_ino, name);
  if (is_first) return false;
  archive_entry_set_hardlink(entry, first->second.c_str());
  TRY(tar_.add(entry));
  return true;
}

Result<void> InodeTar::add_directory(const Fd& directory, const std::string& name, const struct stat& info) {
  ArchiveEntry entry = header(name, info);
  TRY(add_attributes(entry.get(), directory));
  return tar_.add(entry.get());
}

// The extents of data if the file has holes and they are to be kept; otherwise the whole file.
Result<std::vector<sys::Stretch>> InodeTar::data_of(const Fd& file, const struct stat& info) const {
  constexpr int64_t kBlock = 512;
  if (!choice_.holes || info.st_blocks * kBlock >= info.st_size) return std::vector{sys::Stretch{0, info.st_size}};
  std::vector<sys::Stretch> all;
  for (int64_t at = 0;;) {
    auto data = TRY(sys::data_after(file, at, info.st_size));
    if (!data) return all;
    all.push_back(*data);
    at = data->end;
  }
}

Result<void> InodeTar::add_data(const Fd& file, const std::string& name, sys::Stretch data) {
  for (int64_t at = data.begin; at < data.end;) {
    const size_t chunk = size_t(std::min<int64_t>(data.end - at, buffer_.size()));
    size_t got = TRY(sys::read_at(file, std::span(buffer_.data(), chunk), at));
    if (got == 0) return Error(Code::conflict, name + " shrank while it was read");
    TRY(tar_.data(std::string_view(buffer_.data(), got)));
    at += int64_t(got);
  }
  return {};
}

Result<void> InodeTar::add_zeros(int64_t count) {
  static const std::string zeros(1 << 20, '\0');
  for (; count > 0; count -= int64_t(zeros.size()))
    TRY(tar_.data(std::string_view(zeros).substr(0, size_t(std::min<int64_t>(count, zeros.size())))));
  return {};
}

Result<void> InodeTar::add_file(const Fd& file, const std::string& name, const struct stat& info) {
  ArchiveEntry entry = header(name, info);
  bool is_link = TRY(add_link(entry.get(), name, info));
  if (is_link) return {};
  archive_entry_set_size(entry.get(), info.st_size);
  TRY(add_attributes(entry.get(), file));
  const std::vector<sys::Stretch> data = TRY(data_of(file, info));
  const bool is_whole = data.size() == 1 && data[0].begin == 0 && data[0].end == info.st_size;
  if (!is_whole && info.st_size > 0) {
    for (const sys::Stretch& each : data) archive_entry_sparse_add_entry(entry.get(), each.begin, each.end - each.begin);
    if (data.empty()) archive_entry_sparse_add_entry(entry.get(), info.st_size, 0);
  }
  TRY(tar_.add(entry.get()));
  int64_t done = 0;
  for (const sys::Stretch& each : data) {
    TRY(add_zeros(each.begin - done));
    TRY(add_data(file, name, each));
    done = each.end;
  }
  return add_zeros(info.st_size - done);
}

Result<void> InodeTar::add_other(const Fd& parent, const std::string& name, const std::string& path, const struct stat& info) {
  ArchiveEntry entry = header(path, info);
  bool is_link = TRY(add_link(entry.get(), path, info));
  if (is_link) return {};
  if (S_ISLNK(info.st_mode)) {
    std::string target = TRY(sys::read_link_at(parent, name));
    archive_entry_set_symlink(entry.get(), target.c_str());
  }
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) archive_entry_set_rdev(entry.get(), info.st_rdev);
  return tar_.add(entry.get());
}

}  // namespace coracle::image
