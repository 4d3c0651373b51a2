// SPDX-License-Identifier: Apache-2.0
// Copies the contents of a directory to another: an image's files that a tmpfs with "tmpcopyup" will cover. Both trees are walked
// by descriptors and no link is followed, so neither leads elsewhere. Copies directories, files, links and FIFOs with owner, mode
// and times; skips devices and sockets, which images do not contain.
#include "runtime/launch/child.h"
#include "runtime/launch/kernel.h"

namespace coracle::launch {
namespace {

constexpr int kDepthMax = 64;
constexpr size_t kEntriesBytes = 2048;

struct Entry {  // linux_dirent64
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[];
};

int copy_level(int from, int to, int depth) noexcept;

int copy_bytes(int from, int to) noexcept {
  long n;
  while ((n = k_sendfile(to, from, 1 << 20)) > 0) {
  }
  return int(n);
}

int copy_file(int from, int to, const char* name) noexcept {
  int source = k_openat2(from, name, O_RDONLY | O_NOFOLLOW, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
  if (source < 0) return source;
  int copy = k_openat2(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, RESOLVE_BENEATH);
  int rc = copy < 0 ? copy : copy_bytes(source, copy);
  if (copy >= 0) k_close(copy);
  k_close(source);
  return rc;
}

int copy_link(int from, int to, const char* name) noexcept {
  char target[kPathMax];
  long n = k_readlinkat(from, name, target, sizeof target - 1);
  if (n < 0) return int(n);
  target[n] = 0;
  return k_symlinkat(target, to, name);
}

int copy_directory(int from, int to, const char* name, int depth) noexcept {
  int rc = k_mkdirat(to, name, 0700);
  if (rc < 0) return rc;
  constexpr uint64_t kStay = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  int source = k_openat2(from, name, O_RDONLY | O_DIRECTORY, 0, kStay);
  if (source < 0) return source;
  int copy = k_openat2(to, name, O_RDONLY | O_DIRECTORY, 0, kStay);
  rc = copy < 0 ? copy : copy_level(source, copy, depth + 1);
  if (copy >= 0) k_close(copy);
  k_close(source);
  return rc;
}

int copy_entry(int from, int to, const char* name, int depth) noexcept {
  struct statx about;
  int rc = k_statx(from, name, kAtSymlinkNofollow, &about);
  if (rc < 0) return rc;
  const unsigned type = about.stx_mode & kModeTypeMask;
  if (type == kModeDirectory) rc = copy_directory(from, to, name, depth);
  else if (type == kModeRegular) rc = copy_file(from, to, name);
  else if (type == kModeLink) rc = copy_link(from, to, name);
  else if (type == kModeFifo) rc = k_mknodat(to, name, kModeFifo | 0600, 0);
  else return 0;
  if (rc >= 0) rc = k_fchownat(to, name, about.stx_uid, about.stx_gid, kAtSymlinkNofollow);
  if (rc >= 0 && type != kModeLink) rc = k_fchmodat(to, name, about.stx_mode & 07777);
  const __kernel_timespec times[2] = {{about.stx_atime.tv_sec, about.stx_atime.tv_nsec},
                                      {about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec}};
  if (rc >= 0) rc = k_utimes(to, name, times, kAtSymlinkNofollow);
  return rc;
}

bool is_dots(const char* name) noexcept { return same(name, ".") || same(name, ".."); }

int copy_level(int from, int to, int depth) noexcept {
  if (depth > kDepthMax) return -kEloop;
  alignas(Entry) char entries[kEntriesBytes];
  long n;
  while ((n = k_getdents(from, entries, sizeof entries)) > 0) {
    for (long at = 0; at < n;) {
      auto entry = reinterpret_cast<const Entry*>(entries + at);
      at += entry->size;
      if (is_dots(entry->name)) continue;
      if (int rc = copy_entry(from, to, entry->name, depth); rc < 0) return rc;
    }
  }
  return int(n);
}

}  // namespace

int copy_tree(int from, int to) noexcept { return copy_level(from, to, 0); }

}  // namespace coracle::launch
