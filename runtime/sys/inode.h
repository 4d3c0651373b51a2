// SPDX-License-Identifier: Apache-2.0
// Creating inodes and setting their metadata: device nodes, hard links, owners, times, extended attributes, and I/O at an offset.
// Unpacking an image layer needs these beside file.h. Everything works by descriptor, or by the descriptor of the parent and one
// name that is not followed. Errors: errno's.
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
Result<size_t> read_at(const Fd& fd, std::span<char> buffer, int64_t offset);  // 0: end of file
struct Stretch {
  int64_t begin = 0, end = 0;  // byte offsets; `end` is exclusive
};
// The first extent of data at or after `from` in a file of that size; a hole follows it. Nothing: only a hole is left. On a file
// system without SEEK_DATA everything is data.
Result<std::optional<Stretch>> data_after(const Fd& file, int64_t from, int64_t size);
// Makes the empty file `to` a clone of `from` that shares its blocks (copy on write). False: the file system does not support it.
Result<bool> share_blocks(const Fd& from, const Fd& to);
Result<void> resize(const Fd& fd, int64_t size);
Result<void> sync_file_system(const Fd& fd);  // everything dirty on it, by one call instead of one per file

// `mode` includes the type (S_IFCHR, S_IFIFO, …) and all permission bits; the umask does not apply.
Result<void> make_node_at(const Fd& dir, const std::string& name, mode_t mode, dev_t device);
Result<void> link_at(const Fd& from_dir, const std::string& from, const Fd& to_dir, const std::string& to);
Result<void> change_owner_at(const Fd& dir, const std::string& name, uint32_t uid, uint32_t gid);
Result<void> set_modified(const Fd& fd, timespec time);  // sets the access time too
Result<void> set_modified_at(const Fd& dir, const std::string& name, timespec time);

constexpr size_t kAttributeMax = 64 << 10;  // the kernel's limit for a value

Result<void> set_attribute(const Fd& fd, const std::string& name, std::string_view value);
Result<std::string> get_attribute(const Fd& fd, const std::string& name);
Result<std::vector<std::string>> list_attributes(const Fd& fd);

}  // namespace coracle::sys
