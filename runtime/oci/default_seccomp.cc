// SPDX-License-Identifier: Apache-2.0
// The RuntimeDefault profile as a table: calls for every program, calls that need a capability, and a few with conditions on an
// argument. Other calls fail with EPERM. Calls that are newer than this table fail with ENOSYS, so that C libraries fall back
// (container/seccomp_program.cc). The table is the same for all architectures; names that an architecture lacks are skipped.
// Source: the profile that containers expect from Docker; runtime-spec config-linux.md "Seccomp"; syscalls(2).
#include <iterator>
#include <sstream>

#include "runtime/oci/defaults.h"

namespace coracle::oci {
namespace {

constexpr const char* kEveryone =
    // files and directories
    "access faccessat faccessat2 chdir fchdir chmod fchmod fchmodat fchmodat2 chown chown32 fchown fchown32 fchownat "
    "lchown lchown32 close close_range copy_file_range creat dup dup2 dup3 fadvise64 fadvise64_64 fallocate fcntl "
    "fcntl64 "
    "fdatasync fsync sync syncfs sync_file_range sync_file_range2 arm_sync_file_range arm_fadvise64_64 flock ftruncate "
    "ftruncate64 truncate truncate64 futimesat utime utimes utimensat utimensat_time64 getcwd getdents getdents64 link "
    "linkat symlink symlinkat readlink readlinkat rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir mknod "
    "mknodat open openat openat2 lseek _llseek read readv pread64 preadv preadv2 readahead write writev pwrite64 "
    "pwritev "
    "pwritev2 sendfile sendfile64 splice tee vmsplice stat stat64 fstat fstat64 fstatat64 newfstatat lstat lstat64 "
    "statx "
    "statfs statfs64 fstatfs fstatfs64 umask getxattr fgetxattr lgetxattr listxattr flistxattr llistxattr removexattr "
    "fremovexattr lremovexattr setxattr fsetxattr lsetxattr getxattrat setxattrat listxattrat removexattrat ioctl "
    "inotify_add_watch inotify_init inotify_init1 inotify_rm_watch fanotify_mark name_to_handle_at cachestat "
    "io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit statmount listmount "
    // memory
    "brk mmap mmap2 mprotect mremap msync munmap madvise mincore mlock mlock2 mlockall munlock munlockall memfd_create "
    "memfd_secret membarrier map_shadow_stack mseal remap_file_pages pkey_alloc pkey_free pkey_mprotect "
    "process_mrelease "
    // processes, threads, time
    "fork vfork execve execveat exit exit_group wait4 waitid waitpid getpid getppid gettid getpgid getpgrp setpgid "
    "getsid "
    "setsid getpriority setpriority getrlimit setrlimit prlimit64 ugetrlimit getrusage times getcpu sched_getaffinity "
    "sched_setaffinity sched_getattr sched_setattr sched_getparam sched_setparam sched_getscheduler sched_setscheduler "
    "sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_rr_get_interval_time64 sched_yield "
    "set_robust_list get_robust_list set_tid_address set_thread_area get_thread_area arch_prctl prctl rseq futex "
    "futex_time64 futex_waitv futex_wait futex_wake futex_requeue restart_syscall ioprio_get ioprio_set uname sysinfo "
    "pidfd_open pidfd_send_signal ptrace seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self "
    "clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 "
    "clock_adjtime "
    "clock_adjtime64 adjtimex gettimeofday nanosleep time alarm getitimer setitimer timer_create timer_delete "
    "timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime "
    "timerfd_gettime64 timerfd_settime timerfd_settime64 getrandom uretprobe modify_ldt process_vm_readv "
    "process_vm_writev "
    // identity
    "capget capset getuid getuid32 geteuid geteuid32 getgid getgid32 getegid getegid32 getgroups getgroups32 getresuid "
    "getresuid32 getresgid getresgid32 setuid setuid32 setgid setgid32 setreuid setreuid32 setregid setregid32 "
    "setresuid "
    "setresuid32 setresgid setresgid32 setgroups setgroups32 setfsuid setfsuid32 setfsgid setfsgid32 "
    // signals and waiting
    "kill tkill tgkill pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend "
    "rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaltstack sigprocmask sigreturn signalfd signalfd4 "
    "eventfd eventfd2 epoll_create epoll_create1 epoll_ctl epoll_ctl_old "
    "epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old poll ppoll ppoll_time64 select _newselect pselect6 "
    "pselect6_time64 pipe pipe2 "
    // sockets and System V IPC
    "accept accept4 bind connect getpeername getsockname getsockopt setsockopt listen recv recvfrom recvmmsg "
    "recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto shutdown socketcall socketpair ipc mq_getsetattr mq_notify "
    "mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink msgctl msgget msgrcv "
    "msgsnd semctl semget semop semtimedop semtimedop_time64 shmat shmctl shmdt shmget "
    // only on some architectures
    "arm_fadvise64_64 breakpoint cacheflush set_tls riscv_flush_icache riscv_hwprobe sync_file_range2 swapcontext "
    "s390_pci_mmio_read s390_pci_mmio_write s390_runtime_instr";

struct Privilege {
  const char* capability;
  const char* calls;
};
constexpr Privilege kPrivileged[] = {
    {"CAP_BPF", "bpf"},
    {"CAP_DAC_READ_SEARCH", "open_by_handle_at"},
    {"CAP_PERFMON", "perf_event_open"},
    {"CAP_SYSLOG", "syslog"},
    {"CAP_SYS_ADMIN",
     "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie lsm_get_self_attr "
     "lsm_list_modules lsm_set_self_attr mount mount_setattr move_mount open_tree "
     "perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount umount2 unshare"},
    {"CAP_SYS_BOOT", "reboot"},
    {"CAP_SYS_CHROOT", "chroot"},
    {"CAP_SYS_MODULE", "delete_module finit_module init_module"},
    {"CAP_SYS_NICE", "get_mempolicy mbind set_mempolicy set_mempolicy_home_node"},
    {"CAP_SYS_PACCT", "acct"},
    {"CAP_SYS_PTRACE", "kcmp pidfd_getfd process_madvise"},
    {"CAP_SYS_RAWIO", "ioperm iopl"},
    {"CAP_SYS_TIME", "clock_settime clock_settime64 settimeofday stime"},
    {"CAP_SYS_TTY_CONFIG", "vhangup"},
};

json::array names(const char* text) {
  std::istringstream in(text);
  json::array out;
  for (auto at = std::istream_iterator<std::string>(in); at != std::istream_iterator<std::string>(); ++at) out.emplace_back(*at);
  return out;
}

json::object condition(int index, uint64_t value, const char* op, uint64_t value_two = 0) {
  json::object out{{"index", index}, {"value", value}, {"op", op}};
  if (value_two) out["valueTwo"] = value_two;
  return out;
}

json::object allow(json::array calls, json::array conditions = {}) {
  json::object out{{"names", std::move(calls)}, {"action", "SCMP_ACT_ALLOW"}};
  if (!conditions.empty()) out["args"] = std::move(conditions);
  return out;
}

json::value make_default_seccomp() {
  constexpr uint64_t kNamespaceFlags = 0x7E020000;  // CLONE_NEW* of clone's flags: new namespaces need CAP_SYS_ADMIN
  // Excludes AF_ALG (38), the kernel's crypto API: it needs no privilege and had several vulnerabilities. Excludes AF_VSOCK (40),
  // which reaches the host despite the network namespace. The newer families are listed one by one: a filter sees 64 bits where
  // the kernel uses 32, so "greater than 40" would allow 38 with a higher bit set. socketcall of 32-bit x86 programs has its
  // arguments in memory; rejecting it would deny them all sockets.
  constexpr uint64_t kAfAlg = 38, kAfOthers[] = {39, 41, 42, 43, 44, 45};
  json::array rules;
  rules.push_back(allow(names(kEveryone)));
  for (uint64_t persona : {0x0ull, 0x8ull, 0x20000ull, 0x20008ull, 0xffffffffull})
    rules.push_back(allow({"personality"}, {condition(0, persona, "SCMP_CMP_EQ")}));
  rules.push_back(allow({"socket"}, {condition(0, kAfAlg, "SCMP_CMP_LT")}));
  for (uint64_t family : kAfOthers) rules.push_back(allow({"socket"}, {condition(0, family, "SCMP_CMP_EQ")}));
  // The mask, then the expected result: no namespace flag.
  rules.push_back(allow({"clone"}, {condition(0, kNamespaceFlags, "SCMP_CMP_MASKED_EQ")}));
  // Its flags are in memory, where a filter cannot see them: C libraries fall back to clone if it does not exist.
  constexpr int kEnosys = 38;
  rules.push_back(json::object{{"names", json::array{"clone3"}}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", kEnosys}});
  json::object privileged;
  for (const Privilege& privilege : kPrivileged) privileged[privilege.capability] = names(privilege.calls);
  return json::object{{"defaultAction", "SCMP_ACT_ERRNO"},
                      {"defaultErrnoRet", 1},
                      {"syscalls", std::move(rules)},
                      {"capabilities", std::move(privileged)}};
}

}  // namespace

const json::value& default_seccomp() {
  static const json::value profile = make_default_seccomp();
  return profile;
}

}  // namespace coracle::oci
