// SPDX-License-Identifier: Apache-2.0
// See file.h: opening, whole files, directories.
#include "runtime/sys/file.h"

#include <dirent.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include "runtime/base/scope.h"

namespace coracle::sys {
namespace {

// openat2 returns EAGAIN if a rename or mount raced with a ".." in the path. The kernel's documentation recommends trying again.
constexpr int kResolveTriesMax = 64;

Result<Fd> open_resolved(const Fd& root, const std::string& path, int flags, mode_t mode, uint64_t resolve) {
  open_how how{};
  // On 32 bits a file of more than 2 GiB is opened only on demand, and openat2 refuses that beside O_PATH. Elsewhere it is 0.
  how.flags = uint64_t(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_LARGEFILE));
  how.mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0;
  how.resolve = resolve;
  for (int i = 0; i < kResolveTriesMax; ++i) {
    Fd fd(int(::syscall(SYS_openat2, root.get(), path.empty() ? "." : path.c_str(), &how, sizeof how)));
    if (fd) return fd;
    if (errno != EAGAIN && errno != EINTR) break;
  }
  return Error::from_errno("open " + path);
}

Result<std::string> read_up_to(const Fd& fd, size_t max, std::string_view what) {
  std::string out;
  struct stat about;
  if (::fstat(fd.get(), &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
    if (uint64_t(about.st_size) > max) return Error(Code::too_large, std::string(what) + " is too large");
    out.reserve(size_t(about.st_size) + 1);
  }
  char buffer[16384];
  while (true) {
    ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::from_errno(std::string("read ") + std::string(what));
    if (n == 0) return out;
    if (out.size() + size_t(n) > max) return Error(Code::too_large, std::string(what) + " is too large");
    out.append(buffer, size_t(n));
  }
}

// A unique name: a process id is not sufficient, because pid namespaces have equal ids.
std::string temporary_name(const std::string& name) {
  static std::atomic<uint64_t> counter{0};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return "." + name.substr(0, 200) + "." + std::to_string(::getpid()) + "." + std::to_string(++counter) + "." +
         std::to_string(now.tv_sec) + "." + std::to_string(now.tv_nsec) + ".tmp";
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == path.npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

Result<Fd> open(const std::string& path, int flags, mode_t mode) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd) return Error::from_errno("open " + path);
  return fd;
}

Result<Fd> open_at(const Fd& dir, const std::string& name, int flags, mode_t mode) {
  Fd fd(::openat(dir.get(), name.c_str(), flags | O_CLOEXEC, mode));
  if (!fd) return Error::from_errno("open " + name);
  return fd;
}

Result<Fd> open_in(const Fd& root, const std::string& path, int flags, mode_t mode) {
  return open_resolved(root, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

Result<Fd> open_no_links(const Fd& root, const std::string& path, int flags, mode_t mode) {
  return open_resolved(root, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
}

Result<Fd> open_in_mount(const Fd& root, const std::string& path, int flags) {
  return open_resolved(root, path, flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

Result<Fd> open_directory(const std::string& path) { return open(path, O_RDONLY | O_DIRECTORY); }

Result<void> duplicate_onto(const Fd& fd, int number) {
  if (::dup2(fd.get(), number) < 0) return Error::from_errno("duplicate a file descriptor");
  return {};
}

Result<Fd> duplicate(const Fd& fd) {
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return Error::from_errno("duplicate descriptor");
  return copy;
}

std::string fd_path(const Fd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

Result<std::string> read_all(const Fd& fd, size_t max) { return read_up_to(fd, max, "input"); }

Result<std::string> read_standard_input(size_t max) {
  Fd input(0);
  auto text = read_up_to(input, max, "standard input");
  (void)input.release();
  return text;
}

Result<std::string> place_of(const Fd& fd) {
  std::string place(PATH_MAX, '\0');
  ssize_t length = ::readlink(fd_path(fd).c_str(), place.data(), place.size());
  if (length < 0) return Error::from_errno("find a descriptor's place");
  place.resize(size_t(length));
  return place;
}

Result<std::string> absolute_path(const std::string& path) {
  std::unique_ptr<char, decltype(&::free)> found(::realpath(path.c_str(), nullptr), ::free);
  if (!found) return Error::from_errno("find " + path);
  return std::string(found.get());
}

Result<size_t> read_some(const Fd& fd, std::span<char> buffer) {
  for (;;) {
    ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count >= 0) return size_t(count);
    if (errno != EINTR) return Error::from_errno("read");
  }
}

Result<void> rewind(const Fd& fd) {
  if (::lseek(fd.get(), 0, SEEK_SET) < 0) return Error::from_errno("rewind");
  return {};
}

Result<std::string> read_from_start(const Fd& fd, size_t max) {
  char small[4096];  // the usual size of a kernel file
  std::string large(max > sizeof small ? max : 0, '\0');
  char* into = large.empty() ? small : large.data();
  ssize_t n = ::pread(fd.get(), into, max, 0);
  if (n < 0) return Error::from_errno("read");
  if (large.empty()) return std::string(small, size_t(n));
  large.resize(size_t(n));
  return large;
}

Result<std::string> read_file(const std::string& path, size_t max) {
  Fd fd = TRY(open(path, O_RDONLY));
  return read_up_to(fd, max, path);
}

Result<std::string> read_file_at(const Fd& dir, const std::string& name, size_t max) {
  Fd fd = TRY(open_at(dir, name, O_RDONLY));
  return read_up_to(fd, max, name);
}

Result<Fd> open_found_file(const Fd& found, const std::string& shown) {
  struct stat about = TRY(stat(found));
  if (!S_ISREG(about.st_mode)) return Error(Code::invalid, shown + " is not a regular file");
  // stat(2) calls /proc/kmsg one: reading it blocks, and takes the messages from the log of the machine.
  struct statfs system;
  if (::fstatfs(found.get(), &system) < 0) return Error::from_errno("statfs " + shown);
  if (system.f_type == PROC_SUPER_MAGIC) return Error(Code::invalid, shown + " is not a regular file: it is the kernel's");
  return open(fd_path(found), O_RDONLY);  // the same inode, not one that has replaced it
}

Result<std::string> read_file_in(const Fd& root, const std::string& path, size_t max) {
  Fd found = TRY(open_in(root, path, O_PATH));
  Fd fd = TRY(open_found_file(found, path));
  return read_up_to(fd, max, path);
}

Result<void> write_all(const Fd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::from_errno("write");
    bytes.remove_prefix(size_t(n));
  }
  return {};
}

Result<void> write_control(const Fd& dir, const std::string& name, std::string_view text) {
  Fd fd = TRY(open_at(dir, name, O_WRONLY));
  ssize_t n = ::write(fd.get(), text.data(), text.size());
  if (n != ssize_t(text.size())) return Error::from_errno("write " + std::string(text.substr(0, 64)) + " to " + name);
  return {};
}

Result<void> replace_file_at(const Fd& dir, const std::string& name, std::string_view text, mode_t mode, Durability durability) {
  std::string temporary = temporary_name(name);
  Fd fd = TRY(open_at(dir, temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
  Scope undo([&] { (void)::unlinkat(dir.get(), temporary.c_str(), 0); });             // best effort
  if (::fchmod(fd.get(), mode) < 0) return Error::from_errno("set mode of " + name);  // independent of the umask
  TRY(write_all(fd, text).wrap(name));
  if (durability == Durability::durable) TRY(sync(fd).wrap(name));
  if (::renameat(dir.get(), temporary.c_str(), dir.get(), name.c_str()) < 0) return Error::from_errno("rename to " + name);
  undo.dismiss();
  if (durability == Durability::durable) TRY(sync(dir).wrap("directory of " + name));
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode, Durability durability) {
  auto [directory, name] = split_path(path);
  Fd dir = TRY(open_directory(directory));
  return replace_file_at(dir, name, text, mode, durability);
}

Result<void> sync(const Fd& fd) {
  if (::fsync(fd.get()) < 0) return Error::from_errno("fsync");
  return {};
}

Result<void> sync_data(const Fd& fd) {
  if (::fdatasync(fd.get()) < 0) return Error::from_errno("fdatasync");
  return {};
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  // Usually the directory or its parent exists; otherwise all missing ones are created.
  const bool is_there = ::mkdir(path.c_str(), mode) == 0 || errno == EEXIST;
  if (!is_there && errno != ENOENT && errno != ENOTDIR) return Error::from_errno("make directory " + path);
  for (size_t at = 1; !is_there && at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    if (::mkdir(path.substr(0, at).c_str(), mode) < 0 && errno != EEXIST)
      return Error::from_errno("make directory " + path.substr(0, at));
  }
  Fd made = TRY(open_directory(path));
  return {};
}

Result<void> make_directory_at(const Fd& dir, const std::string& name, mode_t mode) {
  if (::mkdirat(dir.get(), name.c_str(), mode) < 0) return Error::from_errno("make directory " + name);
  return {};
}

Result<Fd> make_directories_in(const Fd& root, const std::string& path, mode_t mode) {
  Fd at = TRY(open_in(root, "/", O_PATH | O_DIRECTORY));
  std::string walked;
  size_t begin = 0;
  while (begin < path.size()) {
    size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    walked += "/" + part;
    auto next = open_in(root, walked, O_PATH | O_DIRECTORY);
    if (!next && next.error().err() == ENOENT && part != "..") {
      // Beneath the directory that was just resolved. If somebody else creates it first, it is opened with the same checks.
      if (::mkdirat(at.get(), part.c_str(), mode) < 0 && errno != EEXIST) return Error::from_errno("make directory " + walked);
      next = open_in(root, walked, O_PATH | O_DIRECTORY);
    }
    if (!next) return next.take_error();
    at = std::move(*next);
  }
  return at;
}

Result<std::vector<DirEntry>> list(const Fd& dir) {
  Fd own = TRY(open_at(dir, ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> handle(::fdopendir(own.get()), ::closedir);
  if (!handle) return Error::from_errno("read directory");
  (void)own.release();  // the handle owns it now
  std::vector<DirEntry> out;
  errno = 0;
  while (dirent* entry = ::readdir(handle.get())) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    uint8_t type = entry->d_type;
    if (type == DT_UNKNOWN) {  // some file systems do not report it
      struct stat about;
      if (::fstatat(dir.get(), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0) type = uint8_t(IFTODT(about.st_mode));
    }
    out.push_back({entry->d_name, type, entry->d_ino});
    errno = 0;
  }
  if (errno != 0) return Error::from_errno("read directory");
  std::sort(out.begin(), out.end(), [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
  return out;
}

Result<std::vector<DirEntry>> list(const std::string& path) {
  Fd dir = TRY(open_directory(path));
  return list(dir).wrap(path);
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Result<struct stat> stat(const Fd& fd) {
  struct stat about;
  if (::fstat(fd.get(), &about) < 0) return Error::from_errno("stat");
  return about;
}

Result<bool> is_mount_point(const Fd& fd) {
  struct statx about {};
  if (::statx(fd.get(), "", AT_EMPTY_PATH, STATX_INO, &about) < 0) return Error::from_errno("statx");
  return (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

Result<struct stat> stat_at(const Fd& dir, const std::string& name) {
  struct stat about;
  if (::fstatat(dir.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) < 0) return Error::from_errno("stat " + name);
  return about;
}

Result<void> rename_at(const Fd& from_dir, const std::string& from, const Fd& to_dir, const std::string& to) {
  if (::renameat(from_dir.get(), from.c_str(), to_dir.get(), to.c_str()) < 0)
    return Error::from_errno("rename " + from + " to " + to);
  return {};
}

Result<void> exchange_at(const Fd& dir, const std::string& one, const std::string& other) {
  if (::renameat2(dir.get(), one.c_str(), dir.get(), other.c_str(), RENAME_EXCHANGE) < 0)
    return Error::from_errno("exchange " + one + " and " + other);
  return {};
}

Result<void> unlink(const std::string& path) {
  if (::unlink(path.c_str()) < 0) return Error::from_errno("remove " + path);
  return {};
}

Result<void> unlink_at(const Fd& dir, const std::string& name) {
  if (::unlinkat(dir.get(), name.c_str(), 0) < 0) return Error::from_errno("remove " + name);
  return {};
}

Result<void> remove_directory_at(const Fd& dir, const std::string& name) {
  if (::unlinkat(dir.get(), name.c_str(), AT_REMOVEDIR) < 0) return Error::from_errno("remove directory " + name);
  return {};
}

Result<void> remove_tree(const std::string& path) {
  auto [directory, name] = split_path(path);
  auto dir = open_directory(directory);
  if (!dir && dir.error().code() == Code::not_found) return {};
  if (!dir) return dir.take_error();
  return remove_tree(*dir, name);
}

Result<void> symlink_at(const std::string& target, const Fd& dir, const std::string& name) {
  if (::symlinkat(target.c_str(), dir.get(), name.c_str()) < 0) return Error::from_errno("link " + name);
  return {};
}

Result<std::string> read_link_at(const Fd& dir, const std::string& name) {
  char target[PATH_MAX];
  ssize_t n = ::readlinkat(dir.get(), name.c_str(), target, sizeof target);
  if (n < 0) return Error::from_errno("read link " + name);
  return std::string(target, size_t(n));
}

Result<void> change_mode(const Fd& fd, mode_t mode) {
  if (::fchmod(fd.get(), mode) == 0) return {};
  if (errno == EBADF && ::chmod(fd_path(fd).c_str(), mode) == 0) return {};  // an O_PATH descriptor
  return Error::from_errno("set mode");
}

Result<void> change_owner(const Fd& fd, uint32_t uid, uint32_t gid) {
  if (::fchownat(fd.get(), "", uid, gid, AT_EMPTY_PATH) < 0) return Error::from_errno("set owner");
  return {};
}

Result<DiskUsage> disk_usage(const Fd& fd) {
  struct statfs about;
  if (::fstatfs(fd.get(), &about) < 0) return Error::from_errno("statfs");
  DiskUsage out;
  out.total = Bytes(int64_t(about.f_blocks) * about.f_bsize);
  out.available = Bytes(int64_t(about.f_bavail) * about.f_bsize);
  out.inodes = about.f_files;
  out.inodes_free = about.f_ffree;
  out.magic = about.f_type;
  return out;
}

Result<int64_t> magic_of(const char* path) {
  struct statfs about;
  if (::statfs(path, &about) < 0) return Error::from_errno(std::string("statfs ") + path);
  return int64_t(about.f_type);
}

Result<void> unless_read_only(Result<void> done) {
  if (!done && done.error().err() == EROFS) return {};
  return done;
}

Result<Fd> lock_file(const std::string& path) {
  auto opened = open(path, O_RDWR | O_CREAT, 0600);
  if (!opened && opened.error().err() == EROFS) opened = open(path, O_RDONLY);
  Fd fd = TRY(std::move(opened));
  constexpr int kTries = 100, kPauseMilliseconds = 10;
  for (int i = 0; i < kTries; ++i) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK) return Error::from_errno("lock " + path);
    (void)::poll(nullptr, 0, kPauseMilliseconds);
  }
  return Error(Code::conflict, path + " is locked by another process");
}

Result<void> lock(const Fd& fd, Lock kind) {
  const int operation = kind == Lock::none ? LOCK_UN : kind == Lock::shared ? LOCK_SH : LOCK_EX;
  while (::flock(fd.get(), operation) < 0)
    if (errno != EINTR) return Error::from_errno("lock");
  return {};
}

}  // namespace coracle::sys
