// SPDX-License-Identifier: Apache-2.0
// System calls without a C library: inline functions that return a negative errno, and the few types that the kernel's headers
// omit. Only for coracle-pause, the child and its launcher. Source: the kernel's calling conventions, syscall(2); include/uapi.
#pragma once

#include <asm/ioctls.h>
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/eventpoll.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/signalfd.h>
#include <linux/stat.h>
#include <linux/time_types.h>
#include <linux/uio.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/launch/call.h"

namespace coracle::launch {

// ---- numbers that the kernel's headers do not export ----

constexpr int kEintr = 4, kEagain = 11, kEnoent = 2, kEsrch = 3, kEbadf = 9, kEexist = 17, kEnotdir = 20, kEinval = 22;
constexpr int kEnfile = 23, kEaccess = 13, kEbusy = 16, kEperm = 1, kEloop = 40, kE2big = 7, kEnospc = 28, kEproto = 71;
constexpr int kEtimedout = 110, kEnosys = 38, kErange = 34, kEconnreset = 104, kExdev = 18, kEnotsock = 88;
constexpr int kSigkill = 9, kSigterm = 15, kSigchld = 17;
constexpr unsigned kModeTypeMask = 0170000, kModeDirectory = 0040000, kModeRegular = 0100000, kModeCharacter = 0020000;
constexpr int kSignals = 64, kSigstop = 19;
constexpr unsigned kModeLink = 0120000, kModeFifo = 0010000;
constexpr long kProtRead = 1, kProtWrite = 2, kMapPrivate = 2;
constexpr int kAfUnix = 1, kAfInet = 2, kSockStream = 1, kSockDatagram = 2, kSockSeqpacket = 5;
constexpr int kSolSocket = 1, kSoPeercred = 17, kScmRights = 1;
constexpr int kMsgDontwait = 0x40, kMsgNosignal = 0x4000, kMsgCmsgCloexec = 0x40000000, kMsgTrunc = 0x20, kMsgCtrunc = 8;
constexpr int kSockCloexec = 02000000, kSockNonblock = 04000;
constexpr unsigned long kMsUnbindable = 1ul << 17, kMsPrivate = 1ul << 18, kMsSlave = 1ul << 19, kMsShared = 1ul << 20,
                        kMsRec = 16384;
constexpr int kMntDetach = 2;
constexpr size_t kPathMax = 4096;
constexpr int kAtEmptyPath = 0x1000, kAtSymlinkNofollow = 0x100, kAtRecursive = 0x8000;
constexpr int kWnohang = 1;
constexpr int kPollIn = 1, kPollOut = 4, kPollErr = 8, kPollHup = 16;
constexpr long kProcSuperMagic = 0x9fa0, kDevptsSuperMagic = 0x1cd1, kSysfsMagic = 0x62656572;

struct MessageHeader {  // msghdr
  void* name;
  int name_length;
  iovec* parts;
  size_t parts_count;
  void* control;
  size_t control_length;
  unsigned flags;
};
struct ControlHeader {  // cmsghdr; followed by its data
  size_t length;
  int level, type;
};
struct PeerCredentials {
  int pid;
  unsigned uid, gid;
};
struct PollFd {
  int fd;
  short events, revents;
};
struct WindowSize {
  unsigned short rows, columns, x, y;
};
struct FileSystemInfo {  // statfs, of which only the type is read; on 32 bits the call fails where a number of it has more bits
  long type;
  long rest[15];
};
struct Limit {
  uint64_t soft, hard;
};

// ---- calls ----

// Processors of 32 bits keep the old calls beside newer ones: for ids of 16 bits, times that end in 2038, and a mmap that counts
// in bytes.
#if defined(__NR_geteuid32)
constexpr long kCallGeteuid = __NR_geteuid32, kCallSetresuid = __NR_setresuid32, kCallSetresgid = __NR_setresgid32;
constexpr long kCallSetgroups = __NR_setgroups32, kCallFchown = __NR_fchown32;
constexpr long kCallSetfsuid = __NR_setfsuid32, kCallSetfsgid = __NR_setfsgid32;
#else
constexpr long kCallGeteuid = __NR_geteuid, kCallSetresuid = __NR_setresuid, kCallSetresgid = __NR_setresgid;
constexpr long kCallSetgroups = __NR_setgroups, kCallFchown = __NR_fchown;
constexpr long kCallSetfsuid = __NR_setfsuid, kCallSetfsgid = __NR_setfsgid;
#endif
#if defined(__NR_clock_gettime64)
constexpr long kCallClockGettime = __NR_clock_gettime64, kCallUtimensat = __NR_utimensat_time64, kCallPpoll = __NR_ppoll_time64;
#else
constexpr long kCallClockGettime = __NR_clock_gettime, kCallUtimensat = __NR_utimensat, kCallPpoll = __NR_ppoll;
#endif
#if defined(__NR_mmap2)
constexpr long kCallMmap = __NR_mmap2;
#else
constexpr long kCallMmap = __NR_mmap;
#endif
// There a file of more than 2 GiB is opened only on demand, and openat2 refuses that beside O_PATH.
constexpr int kLargeFile = sizeof(long) == 4 ? O_LARGEFILE : 0;
constexpr int with_large_file(int flags) { return flags & O_PATH ? flags : flags | kLargeFile; }

inline int k_openat(int dir, const char* path, int flags, unsigned mode = 0) {
  return int(syscall(__NR_openat, dir, word(path), with_large_file(flags) | O_CLOEXEC, long(mode)));
}
inline int k_openat2(int dir, const char* path, uint64_t flags, uint64_t mode, uint64_t resolve) {
  open_how how{};
  how.flags = flags & O_PATH ? flags | O_CLOEXEC : flags | O_CLOEXEC | kLargeFile;
  how.mode = mode;
  how.resolve = resolve;
  int fd = -kEagain;
  // EAGAIN: a concurrent rename or mount raced with a ".." in the path. The kernel's documentation recommends trying again.
  for (int i = 0; i < 64 && (fd == -kEagain || fd == -kEintr); ++i)
    fd = int(syscall(__NR_openat2, dir, word(path), word(&how), sizeof how));
  return fd;
}
inline int k_close(int fd) { return int(syscall(__NR_close, fd)); }
inline long k_read(int fd, void* to, size_t size) { return syscall(__NR_read, fd, word(to), long(size)); }
inline long k_write(int fd, const void* from, size_t size) { return syscall(__NR_write, fd, word(from), long(size)); }
inline long k_writev(int fd, const iovec* parts, int count) { return syscall(__NR_writev, fd, word(parts), count); }
inline int k_pipe2(int* ends, int flags) { return int(syscall(__NR_pipe2, word(ends), flags)); }
inline int k_socketpair(int* ends, int type) { return int(syscall(__NR_socketpair, kAfUnix, type, 0, word(ends))); }
inline int k_socket(int domain, int type) { return int(syscall(__NR_socket, domain, type, 0)); }
inline int k_listen(int fd, int backlog) { return int(syscall(__NR_listen, fd, backlog)); }
inline int k_accept_blocking(int fd) { return int(syscall(__NR_accept4, fd, 0, 0, kSockCloexec)); }
inline int k_accept(int fd) { return int(syscall(__NR_accept4, fd, 0, 0, kSockCloexec | kSockNonblock)); }
inline int k_getsockopt(int fd, int level, int option, void* to, int* size) {
  return int(syscall(__NR_getsockopt, fd, level, option, word(to), word(size)));
}
inline long k_sendmsg(int fd, const MessageHeader* message, int flags) { return syscall(__NR_sendmsg, fd, word(message), flags); }
inline long k_recvmsg(int fd, MessageHeader* message, int flags) { return syscall(__NR_recvmsg, fd, word(message), flags); }
inline int k_ioctl(int fd, unsigned long request, const void* argument) {
  return int(syscall(__NR_ioctl, fd, long(request), word(argument)));
}
inline int k_ioctl_value(int fd, unsigned long request, long value) { return int(syscall(__NR_ioctl, fd, long(request), value)); }
inline int k_dup3(int from, int to, int flags) { return int(syscall(__NR_dup3, from, to, flags)); }
inline int k_fcntl(int fd, int command, long argument) { return int(syscall(__NR_fcntl, fd, command, argument)); }
inline int k_close_range(unsigned first, unsigned last, unsigned flags) {
  return int(syscall(__NR_close_range, first, last, flags));
}
inline int k_epoll_create() { return int(syscall(__NR_epoll_create1, EPOLL_CLOEXEC)); }
inline int k_epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  return int(syscall(__NR_epoll_ctl, epoll, operation, fd, word(event)));
}
inline int k_epoll_wait(int epoll, epoll_event* events, int count) {
  return int(syscall(__NR_epoll_pwait, epoll, word(events), count, -1, 0, 8));
}
inline int k_poll_now(PollFd* fds, unsigned count) {
  __kernel_timespec none{};
  return int(syscall(kCallPpoll, word(fds), count, word(&none), 0, 8));
}
inline int k_poll(PollFd* fds, unsigned count,
                  __kernel_timespec* left) {  // null: no limit; `left` is updated to the remaining time
  return int(syscall(kCallPpoll, word(fds), count, word(left), 0, 8));
}
inline int k_signalfd(uint64_t mask) {
  return int(syscall(__NR_signalfd4, -1, word(&mask), sizeof mask, SFD_CLOEXEC | SFD_NONBLOCK));
}
inline int k_sigprocmask_set(uint64_t mask) {
  return int(syscall(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, word(&mask), 0, sizeof mask));
}
struct SignalAction {  // the kernel's sigaction; its mask is aligned as words are
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask[64 / (8 * sizeof(long))];
};
inline int k_sigaction(int signal, const SignalAction* action) {
  return int(syscall(__NR_rt_sigaction, signal, word(action), 0, sizeof action->mask));
}
inline void wait_for_signal(int signal) {  // the signal must be blocked
  uint64_t mask = 1ull << (signal - 1);
  syscall(__NR_rt_sigtimedwait, word(&mask), 0, 0, sizeof mask);
}
inline int k_clone3(clone_args* arguments) { return int(syscall(__NR_clone3, word(arguments), sizeof *arguments)); }
// For a process under a seccomp filter without clone3. The arguments after the third differ by architecture.
inline int k_clone_old(unsigned long flags, int* pidfd) { return int(syscall(__NR_clone, long(flags), 0, word(pidfd), 0, 0)); }
inline int k_wait4(int pid, int* status, int options) { return int(syscall(__NR_wait4, pid, word(status), options, 0)); }
inline int k_waitpid_of(int pidfd) {  // waits for a child's end and leaves it to wait4
  char info[128];
  return int(syscall(__NR_waitid, 3 /* P_PIDFD */, pidfd, word(info), 4 | 0x01000000 /* WEXITED | WNOWAIT */, 0));
}
inline int k_pidfd_open(int pid) { return int(syscall(__NR_pidfd_open, pid, 0)); }
inline int k_pidfd_send_signal(int pidfd, int signal) { return int(syscall(__NR_pidfd_send_signal, pidfd, signal, 0, 0)); }
inline int k_getpid() { return int(syscall(__NR_getpid)); }
inline unsigned k_geteuid() { return unsigned(syscall(kCallGeteuid)); }
[[noreturn]] inline void k_exit(int code) {
  while (true) syscall(__NR_exit_group, code);
}
inline int k_setsid() { return int(syscall(__NR_setsid)); }
inline int k_setns(int fd, int type) { return int(syscall(__NR_setns, fd, type)); }
inline int k_unshare(int flags) { return int(syscall(__NR_unshare, flags)); }
inline int k_sethostname(const char* name, size_t size) { return int(syscall(__NR_sethostname, word(name), long(size))); }
inline int k_setdomainname(const char* name, size_t size) { return int(syscall(__NR_setdomainname, word(name), long(size))); }
inline int k_faccessat(const char* path, int mode) {  // with the effective ids
  return int(syscall(__NR_faccessat2, -100 /* AT_FDCWD */, word(path), mode, 0x200 /* AT_EACCESS */));
}
inline int k_chdir(const char* path) { return int(syscall(__NR_chdir, word(path))); }
inline int k_fchdir(int fd) { return int(syscall(__NR_fchdir, fd)); }
inline long k_getcwd(char* to, size_t size) { return syscall(__NR_getcwd, word(to), long(size)); }
inline int k_mkdirat(int dir, const char* name, unsigned mode) { return int(syscall(__NR_mkdirat, dir, word(name), long(mode))); }
inline int k_mknodat(int dir, const char* name, unsigned mode, uint32_t device) {
  return int(syscall(__NR_mknodat, dir, word(name), long(mode), long(device)));
}
inline int k_symlinkat(const char* target, int dir, const char* name) {
  return int(syscall(__NR_symlinkat, word(target), dir, word(name)));
}
inline long k_readlinkat(int dir, const char* name, char* to, size_t size) {
  return syscall(__NR_readlinkat, dir, word(name), word(to), long(size));
}
inline int k_fchmodat(int dir, const char* name, unsigned mode) {
  return int(syscall(__NR_fchmodat, dir, word(name), long(mode)));
}
inline int k_fchownat(int dir, const char* name, unsigned uid, unsigned gid, int flags) {
  return int(syscall(__NR_fchownat, dir, word(name), long(uid), long(gid), flags));
}
inline int k_renameat(int from_dir, const char* from, int to_dir, const char* to) {
  return int(syscall(__NR_renameat2, from_dir, word(from), to_dir, word(to), 0));
}
inline int k_unlinkat(int dir, const char* name) { return int(syscall(__NR_unlinkat, dir, word(name), 0)); }
inline int k_statx(int dir, const char* path, int flags, struct statx* to) {
  return int(syscall(__NR_statx, dir, word(path), flags, STATX_BASIC_STATS, word(to)));
}
inline int k_fstatfs(int fd, FileSystemInfo* to) { return int(syscall(__NR_fstatfs, fd, word(to))); }
inline long k_getdents(int fd, char* to, size_t size) { return syscall(__NR_getdents64, fd, word(to), long(size)); }
inline int k_fchmod(int fd, unsigned mode) { return int(syscall(__NR_fchmod, fd, long(mode))); }
inline int k_fchown(int fd, unsigned uid, unsigned gid) { return int(syscall(kCallFchown, fd, long(uid), long(gid))); }
inline int k_utimes(int dir, const char* name, const __kernel_timespec* times, int flags) {
  return int(syscall(kCallUtimensat, dir, word(name), word(times), flags));
}
inline long k_sendfile(int to, int from, size_t size) { return syscall(__NR_sendfile, to, from, 0, long(size)); }
inline int k_memfd(const char* name) { return int(syscall(__NR_memfd_create, word(name), 1 /* MFD_CLOEXEC */)); }
inline long k_seek_start(int fd) { return syscall(__NR_lseek, fd, 0, 0); }
inline unsigned k_umask(unsigned mask) { return unsigned(syscall(__NR_umask, long(mask))); }
inline int k_mount_setattr(int dir, const char* path, unsigned flags, mount_attr* attributes) {
  return int(syscall(__NR_mount_setattr, dir, word(path), long(flags), word(attributes), sizeof *attributes));
}
inline int k_move_mount(int from, const char* from_path, int to, const char* to_path, unsigned flags) {
  return int(syscall(__NR_move_mount, from, word(from_path), to, word(to_path), long(flags)));
}
inline int k_open_tree(int dir, const char* path, unsigned flags) {
  return int(syscall(__NR_open_tree, dir, word(path), long(flags)));
}
inline int k_fsopen(const char* type) { return int(syscall(__NR_fsopen, word(type), FSOPEN_CLOEXEC)); }
inline int k_fsconfig(int fd, unsigned command, const char* key, const char* value) {
  return int(syscall(__NR_fsconfig, fd, long(command), word(key), word(value), 0));
}
inline int k_fsmount(int fd, unsigned attributes) { return int(syscall(__NR_fsmount, fd, FSMOUNT_CLOEXEC, long(attributes))); }
inline int k_pivot_root(const char* to, const char* old) { return int(syscall(__NR_pivot_root, word(to), word(old))); }
inline int k_umount2(const char* path, int flags) { return int(syscall(__NR_umount2, word(path), flags)); }
inline int k_mount_change(const char* path, unsigned long flags) {
  return int(syscall(__NR_mount, 0, word(path), 0, long(flags), 0));
}
inline int k_prctl(int option, unsigned long a, unsigned long b = 0, unsigned long c = 0, unsigned long d = 0) {
  return int(syscall(__NR_prctl, option, long(a), long(b), long(c), long(d)));
}
inline int k_sched_setattr(const void* attributes) { return int(syscall(__NR_sched_setattr, 0, word(attributes), 0)); }
inline int k_sched_setaffinity(size_t size, const void* mask) {
  return int(syscall(__NR_sched_setaffinity, 0, long(size), word(mask)));
}
inline int k_ioprio_set(int value) { return int(syscall(__NR_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, 0, value)); }
inline int k_personality(long persona) { return int(syscall(__NR_personality, persona)); }
inline int k_set_mempolicy(int mode, const void* nodes, size_t bits) {
  return int(syscall(__NR_set_mempolicy, mode, word(nodes), long(bits)));
}
inline int k_join_keyring(const char* name) { return int(syscall(__NR_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, word(name))); }
// Sets the file system ids. The call returns the previous id and reports no errors.
inline void k_setfsuid(unsigned uid) { syscall(kCallSetfsuid, long(uid)); }
inline void k_setfsgid(unsigned gid) { syscall(kCallSetfsgid, long(gid)); }
inline int k_chroot(const char* path) { return int(syscall(__NR_chroot, word(path))); }
inline int k_prlimit(unsigned resource, const Limit* limit) {
  return int(syscall(__NR_prlimit64, 0, long(resource), word(limit), 0));
}
inline int k_setgroups(size_t count, const uint32_t* groups) { return int(syscall(kCallSetgroups, long(count), word(groups))); }
inline int k_seteuid(unsigned id) { return int(syscall(kCallSetresuid, -1L, long(id), -1L)); }
inline int k_setresuid(unsigned uid) { return int(syscall(kCallSetresuid, long(uid), long(uid), long(uid))); }
inline int k_setresgid(unsigned gid) { return int(syscall(kCallSetresgid, long(gid), long(gid), long(gid))); }
inline int k_capset(__user_cap_header_struct* head, const __user_cap_data_struct* data) {
  return int(syscall(__NR_capset, word(head), word(data)));
}
inline int k_capget(__user_cap_header_struct* head, __user_cap_data_struct* data) {
  return int(syscall(__NR_capget, word(head), word(data)));
}
inline int k_seccomp(unsigned flags, const sock_fprog* program) {
  return int(syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, long(flags), word(program)));
}
inline int k_execve(const char* path, char* const* argv, char* const* env) {
  return int(syscall(__NR_execve, word(path), word(argv), word(env)));
}
inline void* k_mmap(size_t size, long protection, int fd) {
  return reinterpret_cast<void*>(syscall(kCallMmap, 0, long(size), protection, kMapPrivate, fd, 0));
}
inline int k_madvise_dontneed(void* at, size_t size) {
  return int(syscall(__NR_madvise, word(at), long(size), 4 /* MADV_DONTNEED */));
}
inline uint64_t k_now() {  // nanoseconds since the epoch
  __kernel_timespec now{};
  syscall(kCallClockGettime, 0 /* CLOCK_REALTIME */, word(&now));
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

inline bool failed(const void* mapped) { return reinterpret_cast<unsigned long>(mapped) > static_cast<unsigned long>(-4096l); }

// ---- small helpers on text ----

inline size_t length(const char* text) {
  size_t n = 0;
  while (text[n]) ++n;
  return n;
}
inline bool same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}
inline void copy_text(char* to, const char* from, size_t capacity) {  // always terminated by NUL
  size_t n = 0;
  for (; n + 1 < capacity && from[n]; ++n) to[n] = from[n];
  to[n] = 0;
}

}  // namespace coracle::launch
