// SPDX-License-Identifier: Apache-2.0
// System calls on files, directories, sockets and other descriptors. Every descriptor is created close-on-exec.
//
// There are two families. Functions that take a path are for places that only the daemon can change (state, configuration).
// Functions named *_in take the descriptor of a directory and resolve beneath it with openat2, whatever the names and links are;
// they are for places that a container or an image can change. Errors carry errno; Code follows from it (not_found,
// already_exists, forbidden, ...). Source: open(2), openat2(2), unix(7), inotify(7), memfd_create(2).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle::sys {

// ---- opening ----

Result<Fd> open(const std::string& path, int flags, mode_t mode = 0);
// Opens `name` relative to `dir`. `name` is trusted.
Result<Fd> open_at(const Fd& dir, const std::string& name, int flags, mode_t mode = 0);
// Resolves `path` as if `root` were "/": "..", absolute links and magic links cannot escape. Errors: forbidden if they try.
Result<Fd> open_in(const Fd& root, const std::string& path, int flags, mode_t mode = 0);
// As open_in, but a symbolic link in any component is an error.
Result<Fd> open_no_links(const Fd& root, const std::string& path, int flags, mode_t mode = 0);
// As open_no_links, but a mount point in any component is an error too.
Result<Fd> open_in_mount(const Fd& root, const std::string& path, int flags);
Result<Fd> open_directory(const std::string& path);
Result<Fd> duplicate(const Fd& fd);
Result<void> duplicate_onto(const Fd& fd, int number);  // closes a descriptor that has that number
Result<std::string> place_of(const Fd& fd);  // its current path, links resolved; " (deleted)" is appended if the file is deleted
std::string fd_path(const Fd& fd);           // "/proc/self/fd/7": refers to the open file, for calls that need a path

// ---- whole files ----

constexpr size_t kFileMax = 16 << 20;  // default limit of read_*; a longer file is an error

Result<std::string> read_all(const Fd& fd, size_t max = kFileMax);  // to the end. Errors: too_large
// Reads by a single call from offset 0, independent of the file offset: a short kernel file, or the beginning of an in-memory
// file.
Result<std::string> read_from_start(const Fd& fd, size_t max = 4096);
Result<std::string> read_file(const std::string& path, size_t max = kFileMax);
Result<std::string> read_file_at(const Fd& dir, const std::string& name, size_t max = kFileMax);
// Opens for reading what was found with O_PATH, if it is a regular file. Other types are not opened: a FIFO would block, and
// opening some devices has side effects; nor is a file of procfs, for the same reasons. `shown` is its name in errors. Errors:
// invalid if it is not a regular file.
Result<Fd> open_found_file(const Fd& found, const std::string& shown);
// Reads a regular file beneath an untrusted root, opened as above. Errors: invalid if it is not a regular file; too_large.
Result<std::string> read_file_in(const Fd& root, const std::string& path, size_t max);
Result<std::string> read_standard_input(size_t max);
Result<std::string> absolute_path(const std::string& path);      // realpath. Errors: not_found
Result<size_t> read_some(const Fd& fd, std::span<char> buffer);  // 0 = end
Result<void> write_all(const Fd& fd, std::string_view bytes);
Result<void> rewind(const Fd& fd);  // the next read begins at the start
// Writes `text` to a kernel file (procfs, cgroupfs) with a single write.
Result<void> write_control(const Fd& dir, const std::string& name, std::string_view text);

// `volatile_`: visible at once but not synced to the disk, for data that may be lost in a crash of the machine.
enum class Durability { durable, volatile_ };
// Replaces the file atomically: a reader, or the state after a crash, has the old or the new content and never a part.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode = 0600,
                          Durability durability = Durability::durable);
Result<void> replace_file_at(const Fd& dir, const std::string& name, std::string_view text, mode_t mode = 0600,
                             Durability durability = Durability::durable);
Result<void> sync(const Fd& fd);       // fsync
Result<void> sync_data(const Fd& fd);  // fdatasync

// ---- directories ----

struct DirEntry {
  std::string name;
  uint8_t type = 0;  // DT_REG, DT_DIR, ...
  uint64_t inode = 0;
};

Result<void> make_directories(const std::string& path, mode_t mode = 0755);           // as mkdir -p
Result<void> make_directory_at(const Fd& dir, const std::string& name, mode_t mode);  // Errors: already_exists
// Creates directories as mkdir -p beneath an untrusted root. Returns the last one, opened with O_PATH.
Result<Fd> make_directories_in(const Fd& root, const std::string& path, mode_t mode);
Result<std::vector<DirEntry>> list(const Fd& dir);  // sorted by name, without "." and ".."
Result<std::vector<DirEntry>> list(const std::string& path);
bool exists(const std::string& path);
Result<struct stat> stat(const Fd& fd);
Result<struct stat> stat_at(const Fd& dir, const std::string& name);  // does not follow a symbolic link
// True if it is the root of a mount, including a bind mount. Source: statx(2), Linux 5.8.
Result<bool> is_mount_point(const Fd& fd);
Result<void> rename_at(const Fd& from_dir, const std::string& from, const Fd& to_dir, const std::string& to);
Result<void> exchange_at(const Fd& dir, const std::string& one, const std::string& other);  // atomically, renameat2(2)
Result<void> unlink(const std::string& path);
Result<void> unlink_at(const Fd& dir, const std::string& name);
Result<void> remove_directory_at(const Fd& dir, const std::string& name);
// Removes a file or a directory tree. Follows no link and crosses no mount. It is no error if nothing is there.
Result<void> remove_tree(const Fd& dir, const std::string& name);
Result<void> remove_tree(const std::string& path);
// Ignores EROFS. For cleanup: on a read-only file system the files stay, and that is no error.
Result<void> unless_read_only(Result<void> done);
Result<void> symlink_at(const std::string& target, const Fd& dir, const std::string& name);
Result<std::string> read_link_at(const Fd& dir, const std::string& name);
Result<void> change_mode(const Fd& fd, mode_t mode);
Result<void> change_owner(const Fd& fd, uint32_t uid, uint32_t gid);

struct DiskUsage {
  Bytes total, available;  // available to root
  uint64_t inodes = 0, inodes_free = 0;
  int64_t magic = 0;  // the file system's type, linux/magic.h
};
Result<DiskUsage> disk_usage(const Fd& fd);
Result<int64_t> magic_of(const char* path);  // of the file system that is there

// Takes an exclusive lock, held until the descriptor is closed. Waits a second for a holder that was just killed: a process that
// it was about to execute may still hold its descriptors for a moment. Creates the file if it is missing; on a read-only file
// system it must exist. Errors: conflict if another process holds the lock.
Result<Fd> lock_file(const std::string& path);
// Changes the lock of a descriptor, against all others who opened the file themselves. Blocks until it is granted.
enum class Lock { none, shared, exclusive };
Result<void> lock(const Fd& fd, Lock kind);

// ---- descriptors that are not files ----

Result<Fd> make_memfd(const std::string& name, std::string_view content,
                      bool seal);  // the offset is 0; sealed: nobody can change it
// A sealed memfd to execute. Errors: forbidden if the machine does not execute memfds (vm.memfd_noexec).
Result<Fd> make_program(const std::string& name, std::string_view content);
struct Pipe {
  Fd read, write;
};
Result<Pipe> make_pipe(bool nonblocking = false);
Result<Fd> make_eventfd();          // nonblocking
void signal_eventfd(const Fd& fd);  // makes it readable
void drain_eventfd(const Fd& fd);
Result<Fd> make_inotify();                                                          // nonblocking
Result<int> watch_path(const Fd& inotify, const std::string& path, uint32_t mask);  // IN_MODIFY, ...
void drain_inotify(const Fd& inotify, const std::function<void(int watch, uint32_t mask, std::string_view name)>& each);
Result<Fd> make_epoll();
Result<void> epoll_add(const Fd& epoll, const Fd& fd, uint32_t events, uint64_t key);
Result<void> epoll_change(const Fd& epoll, const Fd& fd, uint32_t events, uint64_t key);
void epoll_remove(const Fd& epoll, const Fd& fd);
struct Ready {
  uint32_t events;
  uint64_t key;
};
// Blocks until a descriptor is ready, at most `timeout`. Returns an empty list on a timeout.
Result<std::vector<Ready>> epoll_wait(const Fd& epoll, std::optional<std::chrono::milliseconds> timeout);
// Waits until `fd` is readable or hung up. False: the timeout has passed.
Result<bool> wait_readable(const Fd& fd, std::optional<std::chrono::milliseconds> timeout);
// As wait_readable, for a kernel file that signals changes with POLLPRI (cgroup.events) and was read through this descriptor
// before.
Result<bool> wait_priority(const Fd& fd, std::optional<std::chrono::milliseconds> timeout);

// Waits until the peer of a connection has closed it, whatever there is to read: messages do not wake the caller.
Result<void> wait_hung_up(const Fd& socket);

// ---- sockets between processes of this machine ----

// A SEQPACKET socket bound to `name` in `dir`, not listening yet. The length of the path is not limited.
Result<Fd> bind_unix(const Fd& dir, const std::string& name, mode_t mode);
Result<void> listen_unix(const Fd& socket);
Result<Fd> connect_unix(const Fd& dir, const std::string& name);  // Errors: not_found; unavailable if nobody listens
// A datagram socket bound to `name` in `dir`, to which everybody who reaches the directory may send. Errors: conflict if the name
// exists.
Result<Fd> bind_datagram(const Fd& dir, const std::string& name);
// Connected to a path, or to a name of the network namespace if it begins with "@", as NOTIFY_SOCKET has them: sd_notify(3).
Result<Fd> connect_datagram(const std::string& address);
struct PeerCredentials {
  int pid = 0;
  uint32_t uid = 0, gid = 0;
};
Result<PeerCredentials> peer_credentials(const Fd& socket);
constexpr size_t kFdsPerMessageMax = 250;  // the kernel's SCM_MAX_FD is 253
Result<void> send_message(const Fd& socket, std::span<const std::byte> bytes, std::span<const int> fds);
struct Message {
  size_t size = 0;  // bytes written to the buffer; 0: the peer has closed the socket
  std::vector<Fd> fds;
};
// Receives one message. Errors: unavailable (EAGAIN) on a nonblocking socket or with `nonblocking`; too_large if it did not fit.
Result<Message> receive_message(const Fd& socket, std::span<std::byte> buffer, bool nonblocking = false);
Result<std::pair<Fd, Fd>> make_socketpair(int type);  // SOCK_SEQPACKET, SOCK_STREAM

// ---- terminals ----

Result<void> set_window_size(const Fd& terminal, uint16_t width, uint16_t height);

}  // namespace coracle::sys
