// SPDX-License-Identifier: Apache-2.0
// See namespaces.h.
#include "runtime/sys/namespaces.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::sys {
namespace {

std::string proc_path(int pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

std::string map_text(const std::vector<IdRange>& ranges) {
  std::string out;
  for (const IdRange& range : ranges)
    out += std::to_string(range.inside) + " " + std::to_string(range.outside) + " " + std::to_string(range.size) + "\n";
  return out;
}

Result<std::vector<IdRange>> read_map(int pid, const char* name) {
  std::string text = TRY(read_file(proc_path(pid, name)));
  std::vector<IdRange> out;
  for (std::string_view line : split(text, '\n')) {
    std::vector<uint32_t> numbers;
    for (std::string_view word : split(line, ' '))
      if (auto number = parse_number<uint32_t>(word)) numbers.push_back(*number);
    if (numbers.size() == 3) out.push_back({numbers[0], numbers[1], numbers[2]});
  }
  return out;
}

Result<void> write_map(int pid, const char* name, const std::vector<IdRange>& ranges) {
  Fd file = TRY(open(proc_path(pid, name), O_WRONLY));
  return write_all(file, map_text(ranges)).wrap(std::string(name) + " of the user namespace");
}

// A clone of this process that creates the namespaces, reports that, and waits to be killed. It only makes system calls.
struct Holder {
  int pid = 0;
  Fd pidfd;
};

Result<Holder> start_holder(uint64_t clone_flags, const Fd* user, uint64_t unshare_flags) {
  Pipe ready = TRY(make_pipe());
  clone_args arguments{};
  int pidfd = -1;
  arguments.flags = clone_flags | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  const int user_fd = user ? user->get() : -1, say = ready.write.get();
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) {
    int err = 0;
    if (user_fd >= 0 && ::syscall(SYS_setns, user_fd, CLONE_NEWUSER) < 0) err = errno;
    if (err == 0 && unshare_flags && ::syscall(SYS_unshare, unshare_flags) < 0) err = errno;
    // The child dies with us if we are killed. Must follow the calls above, which reset the setting.
    if (err == 0 && ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) err = errno;
    if (::syscall(SYS_write, say, &err, sizeof err) < 0) err = errno;  // the parent sees end of file
    while (err == 0) ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 8);
    ::syscall(SYS_exit_group, 1);
  }
  if (pid < 0 && errno == ENOSPC) return Error::from_errno("make user namespace: user.max_user_namespaces is reached");
  if (pid < 0) return Error::from_errno("make user namespace");
  Holder out{int(pid), Fd(pidfd)};
  ready.write.reset();
  int err = 0;
  if (::read(ready.read.get(), &err, sizeof err) != ssize_t(sizeof err)) err = ECHILD;
  if (err == 0) return out;
  (void)::waitpid(out.pid, nullptr, 0);  // it exits by itself
  return Error::from_errno(err, user ? "join user namespace" : "make user namespace");
}

Result<OwnedNamespaces> namespaces_of(const Holder& holder, uint64_t others) {
  OwnedNamespaces out;
  auto open_one = [&](const char* name) { return open(proc_path(holder.pid, ("ns/" + std::string(name)).c_str()), O_RDONLY); };
  out.user = TRY(open_one("user"));
  if (others & CLONE_NEWNET) out.network = TRY(open_one("net"));
  if (others & CLONE_NEWIPC) out.ipc = TRY(open_one("ipc"));
  if (others & CLONE_NEWUTS) out.uts = TRY(open_one("uts"));
  out.uids = TRY(read_map(holder.pid, "uid_map"));
  out.gids = TRY(read_map(holder.pid, "gid_map"));
  return out;
}

void end(const Holder& holder) {
  // It cannot have ended, and its pid is not reused before we have waited for it.
  if (!send_signal(holder.pidfd, SIGKILL)) (void)::kill(holder.pid, SIGKILL);
  (void)::waitpid(holder.pid, nullptr, 0);  // cannot fail either
}

// newuidmap PID 0 1000 1 1 100000 65536 …
Result<void> run_map_helper(const char* program, int pid, const std::vector<IdRange>& ranges) {
  std::vector<std::string> words = {program, std::to_string(pid)};
  for (const IdRange& range : ranges)
    for (uint32_t number : {range.inside, range.outside, range.size}) words.push_back(std::to_string(number));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t helper = 0;
  if (int err = ::posix_spawnp(&helper, program, nullptr, nullptr, argv.data(), environ); err != 0)
    return Error::from_errno(err, std::string(program) + " (of the package uidmap)");
  int status = 0;
  while (::waitpid(helper, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return {};
  return Error(Code::forbidden, std::string(program) + " refused the map" + (WIFEXITED(status) ? "" : " and was killed"));
}

// Runs in a child in the outer user namespace, because a process inside has no privilege over outer ids.
Result<void> write_own_maps_from_outside(const std::vector<IdRange>& uids, const std::vector<IdRange>& gids) {
  Pipe inside = TRY(make_pipe());
  const int parent = ::getpid();
  const pid_t outsider = ::fork();
  if (outsider < 0) return Error::from_errno("fork");
  if (outsider == 0) {
    inside.write.reset();
    char go;
    if (::read(inside.read.get(), &go, 1) != 1) ::_exit(1);
    auto mapped = run_map_helper("newuidmap", parent, uids);
    if (mapped) mapped = run_map_helper("newgidmap", parent, gids);
    if (mapped) ::_exit(0);
    ::dprintf(2, "coracle-oci: %s\n", mapped.error().text().c_str());
    ::_exit(1);
  }
  Scope bury([&] {
    inside.write.reset();
    (void)::waitpid(outsider, nullptr, 0);
  });
  if (::unshare(CLONE_NEWUSER) < 0) return Error::from_errno("unshare user namespace");
  if (::write(inside.write.get(), "", 1) != 1) return Error::from_errno("map ids");
  int status = 0;
  bury.dismiss();
  while (::waitpid(outsider, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) return Error(Code::forbidden, "linux.uidMappings and linux.gidMappings cannot be given to this user");
  return {};
}

bool is_only_own(const std::vector<IdRange>& ranges, uint32_t own) {
  return ranges.size() == 1 && ranges[0].size == 1 && ranges[0].outside == own;
}

}  // namespace

Result<OwnedNamespaces> make_user_namespace(const std::vector<IdRange>& uids, const std::vector<IdRange>& gids, uint64_t others) {
  Holder holder = TRY(start_holder(CLONE_NEWUSER | others, nullptr, 0));
  Scope done([&] { end(holder); });
  if (!gids.empty()) TRY(write_map(holder.pid, "gid_map", gids));
  if (!uids.empty()) TRY(write_map(holder.pid, "uid_map", uids));
  return namespaces_of(holder, others);
}

Result<OwnedNamespaces> join_user_namespace(const Fd& user, uint64_t others) {
  Holder holder = TRY(start_holder(0, &user, others));
  Scope done([&] { end(holder); });
  return namespaces_of(holder, others);
}

Result<Fd> owner_of_namespace(const Fd& ns) {
  Fd user(::ioctl(ns.get(), NS_GET_USERNS));
  if (!user) return Error::from_errno("owner of a namespace");
  return user;
}

Result<void> enter_user_namespace(const std::vector<IdRange>& uids, const std::vector<IdRange>& gids) {
  if (is_only_own(uids, ::geteuid()) && is_only_own(gids, ::getegid())) {
    const int self = ::getpid();
    if (::unshare(CLONE_NEWUSER) < 0) return Error::from_errno("unshare user namespace");
    Fd groups = TRY(open(proc_path(self, "setgroups"), O_WRONLY));
    TRY(write_all(groups, "deny").wrap("setgroups"));
    TRY(write_map(self, "uid_map", uids));
    TRY(write_map(self, "gid_map", gids));
  } else {
    TRY(write_own_maps_from_outside(uids, gids));
  }
  if (::setresgid(0, 0, 0) < 0 || ::setresuid(0, 0, 0) < 0) return Error::from_errno("become root of the user namespace");
  return {};
}

Result<bool> in_initial_user_namespace() {
  auto map = TRY(read_map(::getpid(), "uid_map"));
  return map.size() == 1 && map[0].inside == 0 && map[0].outside == 0 && map[0].size == UINT_MAX;
}

Result<bool> may_set_groups() {
  auto text = read_file("/proc/self/setgroups");
  if (!text && text.error().code() == Code::not_found) return true;  // a kernel without user namespaces
  std::string word = TRY(std::move(text));
  return trim(word) != "deny";
}

Result<Fd> make_time_namespace(const std::vector<ClockOffset>& offsets) {
  if (::unshare(CLONE_NEWTIME) < 0) return Error::from_errno("unshare time namespace");
  Fd file = TRY(open("/proc/self/timens_offsets", O_WRONLY));
  for (const ClockOffset& offset : offsets)
    TRY(write_all(file, offset.clock + " " + std::to_string(offset.seconds) + " " + std::to_string(offset.nanoseconds) + "\n")
            .wrap("timens_offsets"));
  return open("/proc/self/ns/time_for_children", O_RDONLY);
}

Result<void> join_namespace(const Fd& ns, uint64_t flag) {
  if (::setns(ns.get(), int(flag)) < 0) return Error::from_errno("setns");
  return {};
}

}  // namespace coracle::sys
