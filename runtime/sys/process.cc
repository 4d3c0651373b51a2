// SPDX-License-Identifier: Apache-2.0
// See process.h.
#include "runtime/sys/process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/spawn_child.h"

namespace coracle::sys {
namespace {

constexpr size_t kSpawnStackBytes = 64 << 10;
constexpr int kPPidfd = 3;    // P_PIDFD, missing in older headers
constexpr int kSetMdwe = 65;  // PR_SET_MDWE, the same; then PR_MDWE_REFUSE_EXEC_GAIN and PR_MDWE_NO_INHERIT
constexpr unsigned long kRefuseExecGain = 1, kNoInherit = 2;

// The pid from a pidfd's fdinfo, "Pid:\t12": -1 if the process has ended, 0 if it is not in our pid namespace.
Result<int> pid_in_fdinfo(const Fd& pidfd) {
  std::string info = TRY(read_file("/proc/self/fdinfo/" + std::to_string(pidfd.get())));
  for (std::string_view line : split(info, '\n')) {
    if (!line.starts_with("Pid:")) continue;
    auto pid = parse_number<int>(trim(line.substr(4)));
    if (pid && *pid > 0) return *pid;
    return Error(Code::not_found, "process has ended");
  }
  return Error(Code::internal, "fdinfo names no pid");
}

}  // namespace

Result<Spawned> spawn(const SpawnSpec& spec) {
  void* stack = ::mmap(nullptr, kSpawnStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return Error::from_errno("stack for spawn");
  Scope unmap([&] { ::munmap(stack, kSpawnStackBytes); });
  Fd null;
  if (!spec.beside) null = TRY(open("/dev/null", O_RDWR));
  const std::string beside = spec.beside ? std::to_string(spec.beside->get()) : "";
  const char* argv[] = {spec.name.c_str(), spec.beside ? beside.c_str() : nullptr, nullptr};
  SpawnChild child{};
  child.program = spec.program->get();
  child.null = null.get();
  child.fd3 = spec.fd3 ? spec.fd3->get() : -1;
  child.beside = spec.beside ? spec.beside->get() : -1;
  child.argv = argv;
  const char* const nothing[] = {nullptr};
  child.environment = spec.environment ? spec.environment : nothing;

  int pidfd = -1;
  clone_args arguments{};
  // VFORK: this thread waits until the child has left our memory by exec. CLEAR_SIGHAND: none of our signal handlers can run in
  // it.
  arguments.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | spec.namespaces;
  arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  arguments.stack = reinterpret_cast<uintptr_t>(stack);
  arguments.stack_size = kSpawnStackBytes;
  if (spec.cgroup) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = uint64_t(spec.cgroup->get());
  }
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  long pid = clone_onto_stack(&arguments, sizeof arguments, &child);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return Error::from_errno(int(-pid), "clone " + spec.name);
  Spawned out{int(pid), Fd(pidfd)};
  if (child.err != 0) {
    reap(out.pidfd);
    return Error::from_errno(child.err, std::string(child.step) + " " + spec.name);
  }
  return out;
}

Result<Fd> open_pidfd(int pid) {
  Fd pidfd(int(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return Error::from_errno("open process " + std::to_string(pid));
  return pidfd;
}

Result<int> pid_of(const Fd& pidfd) { return pid_in_fdinfo(pidfd); }

Result<void> send_signal(const Fd& pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0) return {};
  if (errno == ESRCH) return Error(Code::not_found, "process has ended");
  return Error::from_errno("send signal");
}

void reap(const Fd& pidfd) {
  siginfo_t info{};
  (void)::waitid(idtype_t(kPPidfd), id_t(pidfd.get()), &info,
                 WEXITED | WNOHANG);  // no error if it is not our child or has not ended
}

Result<int> wait_for_exit(const Fd& pidfd) {
  siginfo_t info{};
  while (::waitid(idtype_t(kPPidfd), id_t(pidfd.get()), &info, WEXITED) < 0)
    if (errno != EINTR) return Error::from_errno("wait for process");
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

int own_pid() { return ::getpid(); }
uint32_t own_gid() { return uint32_t(::getgid()); }

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** item = environ; item && *item; ++item) out.emplace_back(*item);
  return out;
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

Result<void> set_own_affinity(const std::vector<uint64_t>& processors) {
  if (::syscall(SYS_sched_setaffinity, 0, processors.size() * sizeof(uint64_t), processors.data()) < 0)
    return Error::from_errno("sched_setaffinity");
  return {};
}

Result<Fd> namespace_of(const Fd& pidfd, const char* type) {
  int pid = TRY(pid_of(pidfd));
  Fd found = TRY(open("/proc/" + std::to_string(pid) + "/ns/" + type, O_RDONLY));
  TRY(pid_of(pidfd));  // still the same process: the pid was not reused
  return found;
}

Result<bool> is_own_namespace(const Fd& found, const char* type) {
  Fd own = TRY(open(std::string("/proc/self/ns/") + type, O_RDONLY));
  struct stat theirs = TRY(stat(found));
  struct stat ours = TRY(stat(own));
  return theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

Result<uint64_t> foreign_namespaces(const Fd& pidfd) {
  constexpr std::pair<const char*, uint64_t> kKinds[] = {{"uts", CLONE_NEWUTS},   {"ipc", CLONE_NEWIPC},
                                                         {"net", CLONE_NEWNET},   {"cgroup", CLONE_NEWCGROUP},
                                                         {"time", CLONE_NEWTIME}, {"pid", CLONE_NEWPID}};
  int pid = TRY(pid_of(pidfd));
  Fd theirs = TRY(open("/proc/" + std::to_string(pid) + "/ns", O_RDONLY | O_DIRECTORY));
  Fd ours = TRY(open("/proc/self/ns", O_RDONLY | O_DIRECTORY));
  uint64_t out = 0;
  for (const auto& [name, flag] : kKinds) {
    struct stat a, b;
    if (::fstatat(ours.get(), name, &a, 0) < 0) {
      if (errno == ENOENT) continue;  // the kernel does not support it
      return Error::from_errno(std::string("our namespace ") + name);
    }
    if (::fstatat(theirs.get(), name, &b, 0) < 0) return Error::from_errno(std::string("namespace ") + name);
    if (a.st_dev != b.st_dev || a.st_ino != b.st_ino) out |= flag;
  }
  TRY(pid_of(pidfd));  // still the same process: the pid was not reused
  return out;
}

Result<Fd> root_of(const Fd& pidfd) {
  int pid = TRY(pid_of(pidfd));
  Fd found = TRY(open("/proc/" + std::to_string(pid) + "/root", O_PATH | O_DIRECTORY));
  TRY(pid_of(pidfd));
  return found;
}

Result<Fd> make_signalfd(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : signals) ::sigaddset(&set, signal);
  if (::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return Error(Code::internal, "block signals");
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return Error::from_errno("signalfd");
  return fd;
}

std::optional<int> read_signal(const Fd& signals) {
  signalfd_siginfo info;
  if (::read(signals.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return int(info.ssi_signo);
}

std::optional<int> rlimit_number(const std::string& name) {
  static const std::map<std::string, int> numbers = {
      {"RLIMIT_CPU", RLIMIT_CPU},           {"RLIMIT_FSIZE", RLIMIT_FSIZE},
      {"RLIMIT_DATA", RLIMIT_DATA},         {"RLIMIT_STACK", RLIMIT_STACK},
      {"RLIMIT_CORE", RLIMIT_CORE},         {"RLIMIT_RSS", RLIMIT_RSS},
      {"RLIMIT_NPROC", RLIMIT_NPROC},       {"RLIMIT_NOFILE", RLIMIT_NOFILE},
      {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},   {"RLIMIT_AS", RLIMIT_AS},
      {"RLIMIT_LOCKS", RLIMIT_LOCKS},       {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
      {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE}, {"RLIMIT_NICE", RLIMIT_NICE},
      {"RLIMIT_RTPRIO", RLIMIT_RTPRIO},     {"RLIMIT_RTTIME", RLIMIT_RTTIME}};
  auto found = numbers.find(name);
  if (found == numbers.end()) return std::nullopt;
  return found->second;
}

Result<Limits> own_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(__rlimit_resource_t(resource), &limit) < 0) return Error::from_errno("getrlimit");
  return Limits{limit.rlim_cur, limit.rlim_max};
}

void raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // raising the soft limit to the hard one is always allowed
}

Result<uint64_t> own_capabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &head, data) < 0) return Error::from_errno("capget");
  return uint64_t(data[1].permitted) << 32 | data[0].permitted;
}

uint32_t own_uid() { return ::geteuid(); }

Result<void> die_with_parent(int parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return Error::from_errno("die with parent");
  if (::getppid() != parent) return Error(Code::not_found, "the parent has ended");  // before the prctl
  return {};
}

Result<void> keep_capabilities(uint64_t wanted) {
  uint64_t own = TRY(own_capabilities());
  const uint64_t keep = wanted & own;
  for (int number = 0; ::prctl(PR_CAPBSET_READ, number) >= 0; ++number)
    if (!(keep >> number & 1) && ::prctl(PR_CAPBSET_DROP, number) < 0) return Error::from_errno("drop capability");
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) return Error::from_errno("clear ambient capabilities");
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  for (int half = 0; half < 2; ++half) data[half].effective = data[half].permitted = uint32_t(keep >> (32 * half));
  if (::syscall(SYS_capset, &head, data) < 0) return Error::from_errno("set capabilities");
  return {};
}

Result<void> filter_system_calls(std::span<const uint64_t> program, uint32_t flags) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return Error::from_errno("set no_new_privs");
  sock_fprog filter{static_cast<unsigned short>(program.size()),
                    reinterpret_cast<sock_filter*>(const_cast<uint64_t*>(program.data()))};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) < 0) return Error::from_errno("filter system calls");
  return {};
}

Result<void> do_without_capabilities(uint64_t needless) {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) return Error::from_errno("clear ambient capabilities");
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &head, data) < 0) return Error::from_errno("capget");
  for (int half = 0; half < 2; ++half) {
    data[half].effective &= ~uint32_t(needless >> (32 * half));
    data[half].inheritable = 0;
  }
  if (::syscall(SYS_capset, &head, data) < 0) return Error::from_errno("set capabilities");
  return {};
}

void close_own_memory() {
  // Without CAP_SYS_PTRACE, as in some containers, we could no longer read /proc files of our children.
  auto own = own_capabilities();
  if (own && (*own >> CAP_SYS_PTRACE & 1)) (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  (void)::prctl(kSetMdwe, kRefuseExecGain | kNoInherit, 0, 0, 0);  // fails on an older kernel
}

bool takes_seccomp_flags(uint32_t flags) {
  // The kernel checks the flags before it reads the program, which is null.
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, nullptr) < 0 && errno == EFAULT;
}

Result<int> own_oom_score() {
  std::string text = TRY(read_file("/proc/self/oom_score_adj"));
  auto value = parse_number<int>(trim(text));
  if (!value) return Error(Code::internal, "oom_score_adj is no number");
  return *value;
}

Result<void> set_own_oom_score(int score) {
  Fd file = TRY(open("/proc/self/oom_score_adj", O_WRONLY));
  return write_all(file, std::to_string(score)).wrap("set oom_score_adj");
}

Result<std::string> boot_id() {
  std::string text = TRY(read_file("/proc/sys/kernel/random/boot_id"));
  return std::string(trim(text));
}

std::optional<uint64_t> namespace_flag(const std::string& oci_name) {
  static const std::map<std::string, uint64_t> flags = {
      {"pid", CLONE_NEWPID}, {"network", CLONE_NEWNET}, {"mount", CLONE_NEWNS},      {"ipc", CLONE_NEWIPC},
      {"uts", CLONE_NEWUTS}, {"user", CLONE_NEWUSER},   {"cgroup", CLONE_NEWCGROUP}, {"time", CLONE_NEWTIME}};
  auto found = flags.find(oci_name);
  if (found == flags.end()) return std::nullopt;
  return found->second;
}

bool is_dropped(int pid, int signal) {
  if (signal < 1 || signal > 64 || signal == SIGKILL || signal == SIGSTOP) return false;
  auto status = read_file("/proc/" + std::to_string(pid) + "/status");
  if (!status) return false;
  bool is_first = false;
  uint64_t known = 0;  // signals with a handler, and ignored ones
  for (std::string_view line : split(*status, '\n')) {
    std::string_view value = line.substr(std::min(line.size(), line.find(':') + 1));
    if (line.starts_with("NSpid:")) is_first = trim(value).ends_with("\t1");
    if (line.starts_with("SigCgt:") || line.starts_with("SigIgn:"))
      known |= std::strtoull(std::string(trim(value)).c_str(), nullptr, 16);
  }
  return is_first && !(known >> (signal - 1) & 1);
}

}  // namespace coracle::sys
