// SPDX-License-Identifier: Apache-2.0
// See inode.h.
#include "runtime/sys/inode.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace coracle::sys {

Result<void> write_at(const Fd& fd, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    ssize_t count = ::pwrite(fd.get(), bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::from_errno("write");
    bytes.remove_prefix(size_t(count));
    offset += count;
  }
  return {};
}

Result<size_t> read_at(const Fd& fd, std::span<char> buffer, int64_t offset) {
  ssize_t count;
  do {
    count = ::pread(fd.get(), buffer.data(), buffer.size(), offset);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return Error::from_errno("read");
  return size_t(count);
}

Result<std::optional<Stretch>> data_after(const Fd& file, int64_t from, int64_t size) {
  if (from >= size) return std::optional<Stretch>();
  int64_t begin = ::lseek(file.get(), from, SEEK_DATA);
  if (begin < 0 && errno == ENXIO) return std::optional<Stretch>();
  if (begin < 0) return std::optional(Stretch{from, size});
  if (begin >= size) return std::optional<Stretch>();
  int64_t end = ::lseek(file.get(), begin, SEEK_HOLE);
  if (end < 0) return Error::from_errno("look for holes");
  return std::optional(Stretch{begin, std::min(end, size)});
}

Result<bool> share_blocks(const Fd& from, const Fd& to) {
  if (::ioctl(to.get(), FICLONE, from.get()) == 0) return true;
  if (errno == EOPNOTSUPP || errno == ENOTTY || errno == EINVAL || errno == EXDEV || errno == EPERM) return false;
  return Error::from_errno("share blocks");
}

Result<void> resize(const Fd& fd, int64_t size) {
  if (::ftruncate(fd.get(), size) < 0) return Error::from_errno("set size");
  return {};
}

Result<void> sync_file_system(const Fd& fd) {
  if (::syncfs(fd.get()) < 0) return Error::from_errno("syncfs");
  return {};
}

Result<void> make_node_at(const Fd& dir, const std::string& name, mode_t mode, dev_t device) {
  if (::mknodat(dir.get(), name.c_str(), mode, device) < 0) return Error::from_errno("make node " + name);
  // fchmod rejects an O_PATH descriptor, so the mode is set through /proc/self/fd. Without a umask this is not needed, and
  // neither is /proc.
  Fd node(::openat(dir.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!node) return Error::from_errno("open node " + name);
  struct stat made;
  if (::fstat(node.get(), &made) < 0) return Error::from_errno("stat node " + name);
  if ((made.st_mode & 07777) == (mode & 07777)) return {};
  if (::chmod(("/proc/self/fd/" + std::to_string(node.get())).c_str(), mode & 07777) < 0)
    return Error::from_errno("set mode of node " + name);
  return {};
}

Result<void> link_at(const Fd& from_dir, const std::string& from, const Fd& to_dir, const std::string& to) {
  if (::linkat(from_dir.get(), from.c_str(), to_dir.get(), to.c_str(), 0) < 0) return Error::from_errno("link to " + from);
  return {};
}

Result<void> change_owner_at(const Fd& dir, const std::string& name, uint32_t uid, uint32_t gid) {
  if (::fchownat(dir.get(), name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW) < 0) return Error::from_errno("set owner of " + name);
  return {};
}

Result<void> set_modified(const Fd& fd, timespec time) {
  timespec times[2] = {time, time};
  if (::futimens(fd.get(), times) < 0) return Error::from_errno("set time");
  return {};
}

Result<void> set_modified_at(const Fd& dir, const std::string& name, timespec time) {
  timespec times[2] = {time, time};
  if (::utimensat(dir.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW) < 0) return Error::from_errno("set time of " + name);
  return {};
}

Result<void> set_attribute(const Fd& fd, const std::string& name, std::string_view value) {
  if (::fsetxattr(fd.get(), name.c_str(), value.data(), value.size(), 0) < 0) return Error::from_errno("set attribute " + name);
  return {};
}

Result<std::string> get_attribute(const Fd& fd, const std::string& name) {
  std::string value(kAttributeMax, '\0');
  ssize_t size = ::fgetxattr(fd.get(), name.c_str(), value.data(), value.size());
  if (size < 0) return Error::from_errno("get attribute " + name);
  value.resize(size_t(size));
  return value;
}

Result<std::vector<std::string>> list_attributes(const Fd& fd) {
  std::string names(kAttributeMax, '\0');
  ssize_t size = ::flistxattr(fd.get(), names.data(), names.size());
  if (size < 0) return Error::from_errno("list attributes");
  std::vector<std::string> out;
  for (size_t at = 0; at < size_t(size); at += out.back().size() + 1) out.emplace_back(names.c_str() + at);
  return out;
}

}  // namespace coracle::sys
