// SPDX-License-Identifier: Apache-2.0
// See layer_tar.h.
#include "runtime/image/fetch/layer_tar.h"

#include <fcntl.h>

#include <map>

#include "runtime/image/fetch/layer_form.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"

namespace coracle::image {
namespace {

class LayerWriter {
 public:
  explicit LayerWriter(const Sink& to) : tar_(to) {}

  Result<void> write(const Fd& layer) {
    struct stat info = TRY(sys::stat(layer));
    TRY(add_directory(layer, "./", info));
    TRY(add_contents(layer, ""));
    return tar_.end();
  }

 private:
  // Of all but what is in it: who it belongs to and what may be done with it.
  static ArchiveEntry header(const std::string& name, const struct stat& info) {
    ArchiveEntry entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), info.st_mode & S_IFMT);
    archive_entry_set_perm(entry.get(), info.st_mode & 07777);
    archive_entry_set_uid(entry.get(), info.st_uid);
    archive_entry_set_gid(entry.get(), info.st_gid);
    archive_entry_set_mtime(entry.get(), info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return entry;
  }

  static Result<void> add_attributes(archive_entry* entry, const Fd& object) {
    auto names = sys::list_attributes(object);
    if (!names && names.error().code() == Code::unsupported) return {};  // a file system without such
    if (!names) return names.take_error();
    for (const std::string& name : *names) {
      if (!is_image_attribute(name)) continue;
      std::string value = TRY(sys::get_attribute(object, name));
      archive_entry_xattr_add_entry(entry, name.c_str(), value.data(), value.size());
    }
    return {};
  }

  Result<void> add_mark(const std::string& name) { return tar_.add(plain_file(name, 0).get()); }

  Result<void> add_directory(const Fd& directory, const std::string& name, const struct stat& info) {
    ArchiveEntry entry = header(name, info);
    TRY(add_attributes(entry.get(), directory));
    TRY(tar_.add(entry.get()));
    auto opaque = sys::get_attribute(directory, kOpaqueAttribute);
    if (opaque && *opaque == "y") TRY(add_mark(name + std::string(kOpaque)));
    return {};
  }

  Result<void> add_file(const Fd& file, const std::string& name, const struct stat& info) {
    ArchiveEntry entry = header(name, info);
    if (info.st_nlink > 1) {
      auto [first, is_first] = links_.emplace(info.st_ino, name);
      if (!is_first) {
        archive_entry_set_hardlink(entry.get(), first->second.c_str());
        return tar_.add(entry.get());
      }
    }
    archive_entry_set_size(entry.get(), info.st_size);
    TRY(add_attributes(entry.get(), file));
    TRY(tar_.add(entry.get()));
    for (int64_t left = info.st_size; left > 0;) {
      size_t got = TRY(sys::read_some(file, std::span(buffer_.data(), size_t(std::min<int64_t>(left, buffer_.size())))));
      if (got == 0) return Error(Code::conflict, name + " shrank while it was read");
      TRY(tar_.data(std::string_view(buffer_.data(), got)));
      left -= int64_t(got);
    }
    return {};
  }

  // What is neither directory nor file: a link, a device, a fifo.
  Result<void> add_other(const Fd& parent, const std::string& name, const std::string& path, const struct stat& info) {
    ArchiveEntry entry = header(path, info);
    if (S_ISLNK(info.st_mode)) {
      std::string target = TRY(sys::read_link_at(parent, name));
      archive_entry_set_symlink(entry.get(), target.c_str());
    }
    if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) archive_entry_set_rdev(entry.get(), info.st_rdev);
    return tar_.add(entry.get());
  }

  // `path`: its own, with a slash at the end; "" = the layer's.
  Result<void> add_contents(const Fd& directory, const std::string& path) {
    const std::vector<sys::DirEntry> entries = TRY(sys::list(directory));
    for (const sys::DirEntry& each : entries) {
      struct stat info = TRY(sys::stat_at(directory, each.name));
      const std::string name = path + each.name;
      if (is_whiteout(info)) {
        TRY(add_mark(path + std::string(kWhiteout) + each.name));
      } else if (S_ISDIR(info.st_mode)) {
        Fd child = TRY(sys::open_at(directory, each.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
        TRY(add_directory(child, name + "/", info));
        TRY(add_contents(child, name + "/"));
      } else if (S_ISREG(info.st_mode)) {
        Fd file = TRY(sys::open_at(directory, each.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
        TRY(add_file(file, name, info));
      } else if (!S_ISSOCK(info.st_mode)) {
        TRY(add_other(directory, each.name, name, info));
      }
    }
    return {};
  }

  TarWriter tar_;
  std::map<ino_t, std::string> links_;  // where a file of several names stood first
  std::string buffer_ = std::string(64 << 10, '\0');
};

}  // namespace

Result<void> write_layer(const Fd& layer, const Sink& to) {
  LayerWriter writer(to);
  return writer.write(layer);
}

}  // namespace coracle::image
