// SPDX-License-Identifier: Apache-2.0
// Making inodes and dressing them: nodes, hard links, owners, times, extended attributes, and the bytes at an offset. What
// unpacking an image layer needs beside file.h. All by descriptor, or by a parent's descriptor and one name that is not
// followed.
// Source: mknod(2), link(2), utimensat(2), xattr(7), syncfs(2), lseek(2) SEEK_DATA, ioctl_ficlone(2).
#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

Result<void> write_at(const Fd& fd, std::string_view bytes, int64_t offset);
Result<size_t> read_at(const Fd& fd, std::span<char> buffer, int64_t offset);  // 0 = the end
struct Stretch {
  int64_t begin = 0, end = 0;  // bytes
};
// The first stretch of data at or after `from` in a file of this size; beyond it a hole. Nothing: only a hole follows. All is
// data on a file system that tells of no holes.
Result<std::optional<Stretch>> data_after(const Fd& file, int64_t from, int64_t size);
// `to`, which is empty, gets what `from` holds, in the same blocks until one of them is written to. False: this file system
// cannot.
Result<bool> share_blocks(const Fd& from, const Fd& to);
Result<void> resize(const Fd& fd, int64_t size);
Result<void> sync_file_system(const Fd& fd);  // everything dirty on it, once instead of per file

// `mode` with the type (S_IFCHR, S_IFIFO, …) and all permission bits, whatever the umask is.
Result<void> make_node_at(const Fd& dir, const std::string& name, mode_t mode, dev_t device);
Result<void> link_at(const Fd& from_dir, const std::string& from, const Fd& to_dir, const std::string& to);
Result<void> change_owner_at(const Fd& dir, const std::string& name, uint32_t uid, uint32_t gid);
Result<void> set_modified(const Fd& fd, timespec time);  // access time too
Result<void> set_modified_at(const Fd& dir, const std::string& name, timespec time);

constexpr size_t kAttributeMax = 64 << 10;  // the kernel's own limit for a value

Result<void> set_attribute(const Fd& fd, const std::string& name, std::string_view value);
Result<std::string> get_attribute(const Fd& fd, const std::string& name);
Result<std::vector<std::string>> list_attributes(const Fd& fd);

}  // namespace coracle::sys
