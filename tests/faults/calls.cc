// SPDX-License-Identifier: Apache-2.0
// See calls.h.
#include "tests/faults/calls.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <seccomp.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>

namespace coracle::faults {
namespace {

constexpr size_t kTextBytesMax = 160;

// How to print each argument: 'p' path, 'd' directory descriptor of the path that follows, 'f' descriptor, 'b' bytes with the
// length that follows, 'n' number, '-' nothing.
const std::map<std::string, std::string>& shapes() {
  static const std::map<std::string, std::string> all = {
      {"openat", "dp"},
      {"openat2", "dp"},
      {"open", "p"},
      {"mkdirat", "dp"},
      {"mkdir", "p"},
      {"unlinkat", "dp"},
      {"unlink", "p"},
      {"rmdir", "p"},
      {"newfstatat", "dp"},
      {"statx", "dp"},
      {"readlinkat", "dp"},
      {"readlink", "p"},
      {"symlinkat", "pdp"},
      {"renameat2", "dpdp"},
      {"renameat", "dpdp"},
      {"rename", "pp"},
      {"linkat", "dpdp"},
      {"fchmodat", "dp"},
      {"fchownat", "dp"},
      {"faccessat", "dp"},
      {"faccessat2", "dp"},
      {"access", "p"},
      {"mknodat", "dp"},
      {"open_tree", "dp"},
      {"move_mount", "dpdp"},
      {"fsopen", "p"},
      {"fsconfig", "fnpp"},
      {"fsmount", "f"},
      {"mount", "ppp"},
      {"umount2", "p"},
      {"pivot_root", "pp"},
      {"execve", "p"},
      {"execveat", "dp"},
      {"statfs", "p"},
      {"fstatfs", "f"},
      {"chdir", "p"},
      {"chroot", "p"},
      {"fchdir", "f"},
      {"sethostname", "b"},
      {"setdomainname", "b"},
      {"mount_setattr", "dp"},
      {"name_to_handle_at", "dp"},
      {"read", "f"},
      {"write", "fb"},
      {"pread64", "f"},
      {"pwrite64", "f"},
      {"readv", "f"},
      {"writev", "f"},
      {"close", "f"},
      {"fstat", "f"},
      {"lseek", "f"},
      {"ioctl", "fn"},
      {"fcntl", "fn"},
      {"getdents64", "f"},
      {"recvmsg", "f"},
      {"sendmsg", "f"},
      {"recvfrom", "f"},
      {"sendto", "f"},
      {"ftruncate", "f"},
      {"fallocate", "f"},
      {"flock", "f"},
      {"setns", "fn"},
      {"connect", "f"},
      {"accept4", "f"},
      {"accept", "f"},
      {"listen", "f"},
      {"bind", "f"},
      {"fchmod", "f"},
      {"fchown", "f"},
      {"dup", "f"},
      {"dup2", "ff"},
      {"dup3", "ff"},
      {"fsync", "f"},
      {"fdatasync", "f"},
      {"memfd_create", "p"},
      {"prctl", "c"},
      {"unshare", "n"},
      {"socket", "nn"},
      {"close_range", "nn"},
      {"pidfd_send_signal", "fn"},
      {"keyctl", "n"},
      {"seccomp", "n"},
      {"sched_setaffinity", "nn"},
      {"bpf", "n"},
      {"prlimit64", "-n"},
      {"utimensat", "dp"},
      {"waitid", "n"},
      {"wait4", "n-n"},
      {"setresuid", "n"},
      {"setresgid", "n"},
      {"epoll_ctl", "fnf"},
      {"inotify_add_watch", "fp"},
      {"setsockopt", "fnn"},
      {"mmap", "---n"},
  };
  return all;
}

std::string text_at(pid_t tid, uint64_t address, size_t length) {
  char buffer[kTextBytesMax + 1] = {};
  if (address == 0) return "";
  length = std::min(length, kTextBytesMax);
  // Reads at most to the end of the page, since the next one may not be mapped.
  size_t first = std::min(length, size_t(4096 - address % 4096));
  iovec here[] = {{buffer, length}};
  iovec there[] = {{reinterpret_cast<void*>(address), first}, {reinterpret_cast<void*>(address + first), length - first}};
  if (::process_vm_readv(tid, here, 1, there, first < length ? 2 : 1, 0) < 0) return "?";
  std::string out;
  for (const char* at = buffer; *at && at < buffer + length; ++at) out += std::isprint((unsigned char)*at) ? *at : '.';
  return out;
}

std::string without_numbers(const std::string& text) {  // "socket:[123]" → "socket:[N]", "/proc/12/ns" → "/proc/N/ns"
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool starts =
        std::isdigit((unsigned char)text[i]) && (i == 0 || text[i - 1] == '/' || text[i - 1] == '[' || text[i - 1] == '-');
    if (!starts) {
      out += text[i];
      continue;
    }
    size_t end = i;
    while (end < text.size() && std::isdigit((unsigned char)text[end])) ++end;
    bool ends = end == text.size() || text[end] == '/' || text[end] == ']';
    out += ends ? "N" : text.substr(i, end - i);
    i = end - 1;
  }
  return out;
}

std::string descriptor(pid_t tid, int fd) {
  if (fd == AT_FDCWD) return "";
  char link[256] = {};
  if (::readlink(("/proc/" + std::to_string(tid) + "/fd/" + std::to_string(fd)).c_str(), link, sizeof link - 1) < 0)
    return "<none>";
  return without_numbers(link);
}

std::string prctl_name(uint64_t option) {
  switch (option) {
    case PR_SET_PDEATHSIG: return "PR_SET_PDEATHSIG";
    case PR_SET_NAME: return "PR_SET_NAME";
    case PR_SET_DUMPABLE: return "PR_SET_DUMPABLE";
    case PR_SET_NO_NEW_PRIVS: return "PR_SET_NO_NEW_PRIVS";
    case PR_CAPBSET_READ: return "PR_CAPBSET_READ";
    case PR_CAPBSET_DROP: return "PR_CAPBSET_DROP";
    case PR_CAP_AMBIENT: return "PR_CAP_AMBIENT";
    case PR_SET_KEEPCAPS: return "PR_SET_KEEPCAPS";
    case PR_SET_SECUREBITS: return "PR_SET_SECUREBITS";
    case PR_SET_CHILD_SUBREAPER: return "PR_SET_CHILD_SUBREAPER";
    default: return std::to_string(option);
  }
}

}  // namespace

std::string name_of_call(int number) {
  char* name = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  std::string out = name ? name : "call " + std::to_string(number);
  std::free(name);
  return out;
}

bool is_brk(int number) { return number == SYS_brk; }

std::string detail_of(pid_t tid, int number, const uint64_t arguments[6]) {
  auto shape = shapes().find(name_of_call(number));
  if (shape == shapes().end()) return "";
  std::string out, directory;
  auto add = [&](const std::string& text) { out += (out.empty() || text.empty() ? "" : " ") + text; };
  const std::string& letters = shape->second;
  for (size_t i = 0; i < letters.size() && i < 6; ++i) {
    const uint64_t value = arguments[i];
    switch (letters[i]) {
      case 'd': directory = descriptor(tid, int(value)); break;
      case 'p': {
        std::string path = without_numbers(text_at(tid, value, kTextBytesMax));
        add(path.empty() ? directory : path[0] == '/' || directory.empty() ? path : directory + "/" + path);
        directory.clear();
        break;
      }
      case 'f': add(descriptor(tid, int(value))); break;
      case 'b':
        add("'" + without_numbers(text_at(tid, value, i + 1 < 6 ? size_t(arguments[i + 1]) : 0)).substr(0, 40) + "'");
        break;
      case 'c': add(prctl_name(value)); break;
      case 'n': add(std::to_string(int64_t(value))); break;
      default: break;
    }
  }
  return out;
}

bool belongs_to_startup(const std::string& name, const std::string& detail) {
  static const std::set<std::string> always = {
      "brk",  "mmap",      "munmap",    "mprotect", "arch_prctl", "set_tid_address", "set_robust_list",
      "rseq", "prlimit64", "getrandom", "futex"};
  static const std::set<std::string> of_libraries = {"access",  "faccessat",  "openat", "read",
                                                     "pread64", "newfstatat", "fstat",  "close"};
  if (always.count(name)) return true;
  if (name == "prctl") return detail == "PR_CAPBSET_READ";    // by libcap's constructor
  if (name == "readlink") return detail == "/proc/self/exe";  // by a static C library that looks for plug-ins
  if (!of_libraries.count(name)) return false;
  for (const char* place : {"/lib", "/usr/lib", "/etc/ld.so", "/etc/libnl"})
    if (detail.starts_with(place)) return true;
  return false;
}

bool changes_files(const std::string& name, const uint64_t arguments[6]) {
  static const std::set<std::string> always = {
      "mkdir",     "mkdirat",  "rename",    "renameat",        "renameat2",  "unlink",    "unlinkat", "rmdir",
      "link",      "linkat",   "symlink",   "symlinkat",       "mknod",      "mknodat",   "chmod",    "fchmod",
      "fchmodat",  "chown",    "lchown",    "fchown",          "fchownat",   "utimensat", "truncate", "ftruncate",
      "fallocate", "write",    "pwrite64",  "writev",          "pwritev",    "sendfile",  "splice",   "fsync",
      "fdatasync", "setxattr", "fsetxattr", "copy_file_range", "quotactl_fd"};
  constexpr uint64_t kSetAttributes = 0x401c5820;  // FS_IOC_FSSETXATTR: sets a directory's project
  if (name == "openat") return arguments[2] & (O_CREAT | O_TRUNC);
  if (name == "open") return arguments[1] & (O_CREAT | O_TRUNC);
  if (name == "ioctl") return arguments[1] == kSetAttributes;
  return always.count(name) > 0;
}

Failing failing_of(const std::string& name, const std::string& detail) {
  // Calls without errors, or with errors only for wrong arguments, which ours never are.
  static const std::map<std::string, const char*> never = {
      {"exit", ""},
      {"exit_group", ""},
      {"rt_sigreturn", ""},
      {"restart_syscall", ""},
      {"getpid", ""},
      {"gettid", ""},
      {"getppid", ""},
      {"getuid", ""},
      {"geteuid", ""},
      {"getgid", ""},
      {"getegid", ""},
      {"umask", ""},
      {"clock_gettime", ""},
      {"set_tid_address", ""},
      {"sched_yield", ""},
      {"futex", "it has errors, of wrong use; a C library ends the process on them"},
      {"rt_sigaction", ""},
      {"rt_sigprocmask", ""},
      {"set_robust_list", ""},
      {"rseq", ""},
      {"setfsuid", "it answers who one was before, whatever comes of it"},
      {"setfsgid", ""},
  };
  if (never.count(name)) return {};
  static const std::map<std::string, int> errors = {
      {"openat", EMFILE},
      {"openat2", EMFILE},
      {"open", EMFILE},
      {"socket", EMFILE},
      {"socketpair", EMFILE},
      {"pipe2", EMFILE},
      {"memfd_create", EMFILE},
      {"open_tree", EMFILE},
      {"fsopen", EMFILE},
      {"accept4", EMFILE},
      {"dup", EMFILE},
      {"fcntl", EMFILE},
      {"epoll_create1", EMFILE},
      {"signalfd4", EMFILE},
      {"eventfd2", EMFILE},
      {"timerfd_create", EMFILE},
      {"inotify_init1", EMFILE},
      {"pidfd_open", EMFILE},
      {"mmap", ENOMEM},
      {"brk", ENOMEM},
      {"mprotect", ENOMEM},
      {"munmap", ENOMEM},
      {"mremap", ENOMEM},
      {"madvise", ENOMEM},
      {"clone", EAGAIN},
      {"clone3", EAGAIN},
      {"fork", EAGAIN},
      {"vfork", EAGAIN},
      {"unshare", ENOSPC},
      {"setns", ENOMEM},
      {"mkdirat", ENOSPC},
      {"mkdir", ENOSPC},
      {"renameat2", ENOSPC},
      {"renameat", ENOSPC},
      {"symlinkat", ENOSPC},
      {"mknodat", ENOSPC},
      {"ftruncate", ENOSPC},
      {"write", ENOSPC},
      {"pwrite64", ENOSPC},
      {"mount", ENOMEM},
      {"move_mount", ENOMEM},
      {"fsmount", ENOMEM},
      {"fsconfig", ENOMEM},
      {"mount_setattr", EPERM},
      {"pivot_root", EPERM},
      {"umount2", EPERM},
      {"setresuid", EAGAIN},
      {"setresgid", EPERM},
      {"setgroups", EPERM},
      {"capset", EPERM},
      {"prctl", EPERM},
      {"seccomp", ENOMEM},
      {"prlimit64", EPERM},
      {"setsid", EPERM},
      {"chdir", EACCES},
      {"fchdir", EACCES},
      {"chroot", EPERM},
      {"execve", ENOMEM},
      {"execveat", ENOMEM},
      {"keyctl", EDQUOT},
      {"sethostname", EPERM},
      {"setdomainname", EPERM},
      {"bpf", EPERM},
      {"fchmod", EPERM},
      {"fchmodat", EPERM},
      {"fchown", EPERM},
      {"fchownat", EPERM},
      {"sendmsg", ENOBUFS},
      {"recvmsg", ENOMEM},
      {"connect", EAGAIN},
      {"bind", ENOSPC},
      {"listen", ENOMEM},
      {"poll", ENOMEM},
      {"ppoll", ENOMEM},
      {"flock", ENOLCK},
      {"getrandom", EIO},
      {"pidfd_send_signal", EPERM},
      {"kill", EPERM},
      {"inotify_add_watch", ENOSPC},
      {"epoll_ctl", ENOMEM},
      {"capget", EPERM},
      {"sched_setaffinity", EPERM},
      {"getrlimit", EPERM},
  };
  // With WNOHANG, the only error of wait4 is that there is no child; our own descriptors can always be made nonblocking.
  constexpr int kNoHang = 1;
  if (name == "wait4" && std::atoi(detail.substr(detail.rfind(' ') + 1).c_str()) & kNoHang) return {};
  if (name == "read" && detail.starts_with("pipe:")) return {};  // no device is behind a pipe
  if (name == "fcntl" && detail.ends_with(" 4")) return {};      // F_SETFL
  auto found = errors.find(name);
  // close releases the descriptor even if it reports an error. Source: close(2).
  return {found == errors.end() ? EIO : found->second, name == "close"};
}

}  // namespace coracle::faults
