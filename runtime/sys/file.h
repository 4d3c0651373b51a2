// SPDX-License-Identifier: Apache-2.0
// Files, directories, sockets and the other descriptors of the kernel. Every descriptor is born close-on-exec.
//
// Two families: by path, for places that only we can shape (state, configuration), and *_in, relative to a directory's
// descriptor and resolved beneath it by openat2 whatever the names or links say, for places that a container or an
// image can shape. Errors carry errno; Code follows from it (not_found, already_exists, forbidden, ...). Source:
// open(2), openat2(2), unix(7), inotify(7), memfd_create(2).
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
// Relative to `dir`; `name` is ours and trusted.
Result<Fd> open_at(const Fd& dir, const std::string& name, int flags, mode_t mode = 0);
// Resolves `path` as if `root` were "/": "..", absolute links and magic links do not lead out. Errors: forbidden when
// they try.
Result<Fd> open_in(const Fd& root, const std::string& path, int flags, mode_t mode = 0);
// As open_in, but a link anywhere on the way is an error.
Result<Fd> open_no_links(const Fd& root, const std::string& path, int flags, mode_t mode = 0);
// As open_no_links, and what is mounted on the way or at its end is an error.
Result<Fd> open_in_mount(const Fd& root, const std::string& path, int flags);
Result<Fd> open_directory(const std::string& path);
Result<Fd> duplicate(const Fd& fd);
Result<void> duplicate_onto(const Fd& fd, int number);  // what was open under that number is closed
Result<std::string> place_of(const Fd& fd);  // where it stands now, links resolved; " (deleted)" follows the name of what is gone
std::string fd_path(const Fd& fd);           // "/proc/self/fd/7": names what the descriptor names, for calls that want a path

// ---- whole files ----

constexpr size_t kFileMax = 16 << 20;  // read_* refuses longer files, unless told otherwise

Result<std::string> read_all(const Fd& fd, size_t max = kFileMax);  // to the end. Errors: too_large
// By one call from offset 0, wherever the descriptor stands: a short file of the kernel's, or the beginning of one in memory.
Result<std::string> read_from_start(const Fd& fd, size_t max = 4096);
Result<std::string> read_file(const std::string& path, size_t max = kFileMax);
Result<std::string> read_file_at(const Fd& dir, const std::string& name, size_t max = kFileMax);
// For reading, what was found by O_PATH, if it is a regular file. Nothing else is opened: a fifo would block, and of a device
// that alone can be an order. `shown` names it. Errors: invalid when it is no regular file.
Result<Fd> open_found_file(const Fd& found, const std::string& shown);
// A regular file beneath a hostile root, opened as above. Errors: invalid when it is no regular file, too_large.
Result<std::string> read_file_in(const Fd& root, const std::string& path, size_t max);
Result<std::string> read_standard_input(size_t max);
Result<std::string> absolute_path(const std::string& path);      // realpath. Errors: not_found
Result<size_t> read_some(const Fd& fd, std::span<char> buffer);  // 0 = end
Result<void> write_all(const Fd& fd, std::string_view bytes);
// Writes `text` to a file of the kernel's (procfs, cgroupfs) in one write.
Result<void> write_control(const Fd& dir, const std::string& name, std::string_view text);

// `volatile_` = visible at once but not forced to the disk: for what a crash of the machine may undo.
enum class Durability { durable, volatile_ };
// Replaces the file as a whole: a reader and a crash see the old or the new content, never a part.
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
// As mkdir -p beneath a hostile root. Returns the last one, O_PATH.
Result<Fd> make_directories_in(const Fd& root, const std::string& path, mode_t mode);
Result<std::vector<DirEntry>> list(const Fd& dir);  // sorted by name, without "." and ".."
Result<std::vector<DirEntry>> list(const std::string& path);
bool exists(const std::string& path);
Result<struct stat> stat(const Fd& fd);
Result<struct stat> stat_at(const Fd& dir, const std::string& name);  // does not follow a link
// Whether it is the root of a mount, a bind mount's too. Source: statx(2), Linux 5.8.
Result<bool> is_mount_point(const Fd& fd);
Result<void> rename_at(const Fd& from_dir, const std::string& from, const Fd& to_dir, const std::string& to);
Result<void> exchange_at(const Fd& dir, const std::string& one, const std::string& other);  // both at once, renameat2(2)
Result<void> unlink(const std::string& path);
Result<void> unlink_at(const Fd& dir, const std::string& name);
Result<void> remove_directory_at(const Fd& dir, const std::string& name);
// Removes a file, or a directory with everything in it, following no link and crossing no mount. Nothing there is
// success.
Result<void> remove_tree(const Fd& dir, const std::string& name);
Result<void> remove_tree(const std::string& path);
// Of tidying up: on a read-only file system what is there stays, and that is no error.
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

// Holds an exclusive lock for as long as the descriptor lives. Waits a second for a holder that has just been killed: what
// it was about to execute has its descriptors for another moment. The file is made where it is not there; on a read-only file
// system it has to be. Errors: conflict when another process holds it.
Result<Fd> lock_file(const std::string& path);
// The same for a descriptor, among all that opened the file by themselves; waits.
enum class Lock { none, shared, exclusive };
Result<void> lock(const Fd& fd, Lock kind);

// ---- descriptors that are no files ----

Result<Fd> make_memfd(const std::string& name, std::string_view content,
                      bool seal);  // at its start; sealed: nobody can change it
// A sealed one to be executed. Errors: forbidden where the machine executes nothing from memory (vm.memfd_noexec).
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
// Blocks until something is ready, at most `timeout`. Empty: timed out.
Result<std::vector<Ready>> epoll_wait(const Fd& epoll, std::optional<std::chrono::milliseconds> timeout);
// Waits until `fd` is readable (or hung up). False: timed out.
Result<bool> wait_readable(const Fd& fd, std::optional<std::chrono::milliseconds> timeout);
// As wait_readable, for a file of the kernel's that announces its changes (cgroup.events), read before by this
// descriptor.
Result<bool> wait_priority(const Fd& fd, std::optional<std::chrono::milliseconds> timeout);

// ---- sockets between processes of this machine ----

// A SEQPACKET socket bound to `name` in `dir`, not listening yet. Path length does not matter.
Result<Fd> bind_unix(const Fd& dir, const std::string& name, mode_t mode);
Result<void> listen_unix(const Fd& socket);
Result<Fd> connect_unix(const Fd& dir, const std::string& name);  // Errors: not_found, unavailable when nobody listens
struct PeerCredentials {
  int pid = 0;
  uint32_t uid = 0, gid = 0;
};
Result<PeerCredentials> peer_credentials(const Fd& socket);
constexpr size_t kFdsPerMessageMax = 250;  // the kernel's SCM_MAX_FD is 253
Result<void> send_message(const Fd& socket, std::span<const std::byte> bytes, std::span<const int> fds);
struct Message {
  size_t size = 0;  // of what was written to the buffer; 0 = the other side is gone
  std::vector<Fd> fds;
};
// Errors: unavailable (EAGAIN) on a nonblocking socket or with `nonblocking`; too_large when it did not fit.
Result<Message> receive_message(const Fd& socket, std::span<std::byte> buffer, bool nonblocking = false);
Result<std::pair<Fd, Fd>> make_socketpair(int type);  // SOCK_SEQPACKET, SOCK_STREAM

// ---- terminals ----

Result<void> set_window_size(const Fd& terminal, uint16_t width, uint16_t height);

}  // namespace coracle::sys
