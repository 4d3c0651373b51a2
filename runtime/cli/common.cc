// SPDX-License-Identifier: Apache-2.0
// See commands.h.
#include <signal.h>
#include <sys/epoll.h>

#include <cstdio>
#include <set>
#include <span>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/hooks.h"
#include "runtime/cli/log.h"
#include "runtime/cli/terminal.h"
#include "runtime/container/prepare.h"
#include "runtime/image/users.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/process.h"
#include "runtime/sys/stream.h"
#include "runtime/sys/terminal.h"

namespace coracle::cli {
namespace {

bool has_namespace(const oci::Spec& spec, const std::string& type) {
  for (const oci::Namespace& ns : spec.linux_.namespaces)
    if (ns.type == type) return true;
  return false;
}

runtime::SeccompCache cache_of(const Containers& containers) { return runtime::SeccompCache(containers.path() + "/.seccomp"); }

}  // namespace

Result<Containers> open_containers(const Options& options) { return Containers::open(options.root); }

Result<cgroup::Manager> manager_of(const Options& options) {
  if (!options.cgroup_manager.empty()) return cgroup::manager_of(options.cgroup_manager);
  return options.systemd_cgroup ? cgroup::Manager::systemd : cgroup::Manager::cgroupfs;
}

runtime::SandboxInfo sandbox_info_of(const oci::Spec& spec) {
  runtime::SandboxInfo out;
  out.is_pod = false;
  out.has_network = has_namespace(spec, "network");
  out.has_ipc = has_namespace(spec, "ipc");
  out.has_uts = has_namespace(spec, "uts");
  out.host_pid = !has_namespace(spec, "pid");
  if (!spec.linux_.mount_label.empty()) {
    out.has_selinux = sys::exists("/sys/fs/selinux/enforce");
    // The specification's validation programs need it to succeed, as with crun.
    if (!out.has_selinux) warn("linux.mountLabel: this kernel has no SELinux switched on");
  }
  return out;
}

Result<void> leave_privilege_behind(oci::Spec& spec) {
  if (sys::own_uid() == 0) return {};
  uint64_t capabilities = TRY(sys::own_capabilities());
  if (capabilities != 0) return {};
  std::erase_if(spec.linux_.namespaces, [](const oci::Namespace& ns) { return ns.type == "user" && ns.path.empty(); });
  if (spec.linux_.uid_mappings.empty() || spec.linux_.gid_mappings.empty())
    return Error(Code::forbidden,
                 "linux.uidMappings: an unprivileged user's container needs a user namespace and maps (see spec --rootless)");
  TRY(sys::enter_user_namespace(runtime::id_ranges(spec.linux_.uid_mappings), runtime::id_ranges(spec.linux_.gid_mappings)));
  spec.linux_.uid_mappings.clear();
  spec.linux_.gid_mappings.clear();
  return {};
}

void drop_unknown_capabilities(oci::Process& process) {
  if (!process.capabilities) return;
  oci::Capabilities& sets = *process.capabilities;
  std::set<std::string> unknown;
  for (auto* set : {&sets.bounding, &sets.effective, &sets.inheritable, &sets.permitted, &sets.ambient})
    std::erase_if(*set, [&](const std::string& name) { return !oci::capability_number(name) && (unknown.insert(name), true); });
  for (const std::string& name : unknown) warn("process.capabilities: " + coracle::quoted(name) + " is unknown to this machine");
}

Result<void> tell_missing_capabilities(const oci::Process& process, runtime::LauncherInfo own, bool has_user_namespace) {
  if (!process.capabilities) return {};
  if (has_user_namespace) own.capabilities = ~uint64_t(0);
  auto granted = TRY(runtime::plan_capabilities(*process.capabilities, own));
  const std::string missing = runtime::capabilities_not_granted(*process.capabilities, granted);
  if (!missing.empty()) warn("process.capabilities: not granted: " + missing);
  for (const std::string& name : runtime::ambient_not_granted(*process.capabilities, granted))  // the words are runc's
    warn("process.capabilities: can't raise ambient capability " + name + ": it is not both permitted and inheritable");
  return {};
}

Result<runtime::SeccompPtr> load_seccomp(const Containers& containers, const json::value& profile, const oci::Process& process,
                                         const runtime::LauncherInfo& own) {
  uint64_t holds = 0;
  if (process.capabilities) {
    runtime::CapabilitySets sets = TRY(runtime::plan_capabilities(*process.capabilities, own));
    holds = sets.bounding;
  }
  runtime::SeccompCache cache = cache_of(containers);
  return cache.get(profile, holds);
}

Result<runtime::SeccompPtr> find_seccomp(const Containers& containers, const std::string& name) {
  if (name.empty()) return runtime::SeccompPtr();
  runtime::SeccompCache cache = cache_of(containers);
  return cache.find(name);
}

uint32_t activated_sockets() {
  if (parse_number<int>(sys::environment("LISTEN_PID")) != sys::own_pid()) return 0;
  return parse_number<uint32_t>(sys::environment("LISTEN_FDS")).value_or(0);
}

Result<void> check_descriptors(const Options& options) {
  uint32_t next = 3;
  for (auto [count, name] : {std::pair(options.listen_fds, "LISTEN_FDS"), std::pair(options.preserve_fds, "--preserve-fds")})
    for (uint32_t i = 0; i < count; ++i, ++next)
      if (!sys::is_open(int(next)))
        return Error(Code::invalid, std::string(name) + ": descriptor " + std::to_string(next) + " is not open");
  return {};
}

Result<void> set_home(oci::Process& process, Result<Fd> root) {
  std::string given;
  for (const std::string& entry : process.env)
    if (entry.starts_with("HOME=")) given = entry.substr(5);
  if (!given.empty()) return {};
  std::erase_if(process.env, [](const std::string& entry) { return entry.starts_with("HOME="); });
  auto passwd = root ? image::read_account_file(*root, "etc/passwd") : Result<std::string>(root.take_error());
  // What an image has, or keeps from us, is its own affair. A failure of the machine would give the process another HOME, now and
  // then, and nobody would notice.
  const bool is_machine_s = !passwd && (passwd.error().code() == Code::unavailable || passwd.error().code() == Code::internal);
  if (is_machine_s) return passwd.take_error().wrap("HOME");
  auto user = passwd ? image::find_user(std::to_string(process.user.uid), *passwd, "") : Result<oci::User>(oci::User{});
  process.env.push_back("HOME=" + (user && !user->home.empty() ? user->home : std::string("/")));
  return {};
}

Result<void> send_listener(const oci::SeccompListener& listener, const json::object& state, int pid, const Fd& fd) {
  json::object message{{"ociVersion", *state.if_contains("ociVersion")}, {"fds", json::array{"seccompFd"}}, {"pid", pid}};
  message["metadata"] = listener.metadata;
  message["state"] = state;
  Fd socket = TRY(sys::connect_stream(listener.path).wrap("linux.seccomp.listenerPath: failed to connect with seccomp agent"));
  std::string text = to_text(message);
  const int fds[] = {fd.get()};
  return sys::send_message(socket, std::as_bytes(std::span(text)), fds).wrap("linux.seccomp.listenerPath");
}

Result<void> send_pidfd(const std::string& path, const Fd& pidfd) {
  if (path.empty()) return {};
  Fd socket = TRY(sys::connect_stream(path).wrap("--pidfd-socket " + path));
  const std::string_view name = "pidfd";  // the receiver may print it
  const int fds[] = {pidfd.get()};
  return sys::send_message(socket, std::as_bytes(std::span(name)), fds).wrap("--pidfd-socket " + path);
}

Result<void> write_pid_file(const std::string& path, int pid) {
  if (path.empty()) return {};
  return sys::replace_file(path, std::to_string(pid), 0644, sys::Durability::volatile_).wrap("--pid-file");
}

Result<void> print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) == EOF || std::fflush(stdout) == EOF) return Error::from_errno("write to standard output");
  return {};
}

namespace {

// A cgroup that is gone may have left its scope, and its counterparts in cgroup v1.
Result<void> remove_cgroup(cgroup::Container& cgroup) {
  if (cgroup.exists()) {
    TRY(cgroup.kill());
    return cgroup.remove(kKillTimeout);
  }
  if (cgroup.record().path.empty()) return {};
  auto removed = cgroup.remove(kKillTimeout);
  if (!removed && cgroup.record().unit.empty()) return removed;
  if (!removed) warn(removed.error().text());  // nothing runs in it any more
  return {};
}

}  // namespace

Result<void> destroy(const Containers& containers, Container& container, cgroup::Container* known) {
  auto pidfd = container.pidfd();
  if (!pidfd && pidfd.error().code() != Code::not_found) return pidfd.take_error();
  if (pidfd) {
    (void)sys::send_signal(*pidfd, SIGKILL);  // it may have ended
    TRY(sys::wait_readable(*pidfd, std::chrono::milliseconds(kKillTimeout)));
    sys::reap(*pidfd);
  }
  return destroy_ended(containers, container, known);
}

Result<void> destroy_ended(const Containers& containers, Container& container, cgroup::Container* known) {
  auto cgroup = known ? Result<cgroup::Container>(std::move(*known)) : container.find_cgroup();
  if (!cgroup && cgroup.error().code() != Code::not_found) return cgroup.take_error();
  if (cgroup) TRY(remove_cgroup(*cgroup));
  if (!container.saved().has_mount_namespace) TRY(sys::detach_below(container.saved().rootfs));
  TRY(containers.remove(container.saved().id));
  run_late_hooks(container.saved().hooks.poststop, "poststop", container.state(Status::stopped));
  return {};
}

Result<Fd> block_signals() {
  std::vector<int> all;
  for (int signal = 1; signal < 32; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP && signal != SIGCHLD && signal != SIGSEGV && signal != SIGBUS &&
        signal != SIGFPE && signal != SIGILL && signal != SIGURG)
      all.push_back(signal);
  return sys::make_signalfd(all);
}

Result<int> run_foreground(const Fd& pidfd, const Fd& signals, Fd terminal, const NotifyRelay* relay) {
  std::optional<TerminalBridge> bridge;
  Fd both;  // readable when one of the signals or the relay is
  if (relay) {
    both = TRY(sys::make_epoll());
    TRY(sys::epoll_add(both, signals, EPOLLIN, 0));
    TRY(sys::epoll_add(both, relay->fd(), EPOLLIN, 0));
  }
  if (terminal) {
    TerminalBridge joined = TRY(TerminalBridge::join(std::move(terminal)));
    bridge.emplace(std::move(joined));
  }
  bool is_joined = bridge.has_value();
  while (true) {
    const Fd& events = relay ? both : signals;
    if (is_joined) is_joined = TRY(bridge->copy(pidfd, events));
    else TRY(sys::wait_any({pidfd.get(), events.get(), -1, -1}));
    if (relay) {
      auto passed = relay->pass_on(sys::own_pid());  // we are the service's process
      if (!passed) warn(passed.error().text());      // its process goes on
      if (!passed || *passed) relay = nullptr;
    }
    bool has_ended = TRY(sys::wait_readable(pidfd, std::chrono::milliseconds(0)));
    if (has_ended) return sys::wait_for_exit(pidfd);
    while (auto signal = sys::read_signal(signals)) {
      if (*signal == SIGWINCH && bridge) bridge->resize();
      else (void)sys::send_signal(pidfd, *signal);  // it may have ended
    }
  }
}

}  // namespace coracle::cli
