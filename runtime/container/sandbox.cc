// SPDX-License-Identifier: Apache-2.0
// See sandbox.h: the sandbox's life cycle and the known state of its containers. Operations on containers are in
// sandbox_containers.cc.
#include "runtime/container/sandbox.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/wait.h>

#include <cstring>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/cgroup/control.h"
#include "runtime/container/explain.h"
#include "runtime/oci/checks.h"
#include "runtime/oci/validate.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

static_assert(kSandboxContainersMax == pause::kSlotsMax);

constexpr std::chrono::milliseconds kStateTimeout{5000};
constexpr size_t kSysctlBytesMax = 16384;

WallTime wall_time(uint64_t nanoseconds) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(nanoseconds)));
}
int64_t nanoseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

bool has_begun(const pause::State& state) {
  return state.status == pause::Status::running || state.status == pause::Status::ended;
}

// coracle-pause does not cross mounts when it writes a sysctl. On a machine that is itself a container (systemd-nspawn, LXC,
// Docker) there are mounts on /proc/sys; a copy of /proc has none of them. If the kernel does not allow the copy, writing the
// sysctl reports the error.
Result<Fd> open_proc_sys(const SandboxSpec& spec) {
  Fd proc = TRY(sys::open("/proc", O_PATH | O_DIRECTORY));
  for (const auto& [name, value] : spec.sysctl) {
    if (sys::open_in_mount(proc, "sys/" + oci::sysctl_path(name), O_PATH).ok()) continue;
    if (auto copy = sys::clone_mount("/proc", false)) proc = *std::move(copy);
    break;
  }
  return sys::open_at(proc, "sys", O_PATH | O_DIRECTORY);
}

// The file system tree in which pause and its children start: see pause/setup.cc.
Result<Fd> make_pause_root() {
  Fd root = TRY(sys::new_file_system("tmpfs", {{"size", "64k", true}, {"nr_inodes", "16", true}, {"mode", "755", true}},
                                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  for (const char* name : {"r", "shm", "empty"}) TRY(sys::make_directory_at(root, name, 0755));
  Fd null = TRY(sys::open_at(root, "null", O_WRONLY | O_CREAT | O_EXCL, 0666));
  return root;
}

Result<std::string> sysctl_list(const SandboxSpec& spec) {
  TRY(oci::check_sysctls(spec.sysctl, !spec.host_network, !spec.host_ipc, !spec.host_network));
  std::string out;
  for (const auto& [name, value] : spec.sysctl) {
    out += oci::sysctl_path(name);
    out += '\0';
    out += value;
    out += '\0';
  }
  if (out.size() > kSysctlBytesMax) return Error(Code::too_large, "sysctl");
  return out;
}

// The namespaces that the pod's user namespace owns, if it has one.
constexpr uint64_t kOwnedNamespaces = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

uint64_t namespaces_of(const SandboxSpec& spec) {
  uint64_t out = CLONE_NEWNS;
  if (!spec.host_network) out |= CLONE_NEWNET | CLONE_NEWUTS;  // a hostNetwork pod has the host's name
  if (!spec.host_ipc) out |= CLONE_NEWIPC;
  if (!spec.uid_mappings.empty()) out &= ~kOwnedNamespaces;  // pause joins them
  if (!spec.host_pid) out |= CLONE_NEWPID;                   // pause is its first process: if it ends, all end
  return out;
}

Result<void> check_user_namespace(const SandboxSpec& spec) {
  if (spec.uid_mappings.empty() != spec.gid_mappings.empty())
    return Error(Code::invalid, "a user namespace needs uidMappings and gidMappings");
  if (spec.uid_mappings.empty()) return {};
  // The pod's root would have no privileges over namespaces that it shares with the host.
  if (spec.host_network || spec.host_ipc || spec.host_pid)
    return Error(Code::invalid, "a pod with a user namespace of its own cannot have the host's network, ipc or processes");
  oci::Spec mapped;
  mapped.linux_.uid_mappings = spec.uid_mappings;
  mapped.linux_.gid_mappings = spec.gid_mappings;
  TRY(oci::check_mappings(mapped));
  for (const auto* list : {&spec.uid_mappings, &spec.gid_mappings})
    if (auto root = IdMaps::host_id(*list, 0); !root || *root == 0)
      return Error(Code::invalid, "the root of a user namespace has to be somebody, and not the host's root");
  return {};
}

Result<void> check(const SandboxSpec& spec) {
  if (!is_sandbox_id(spec.id))
    return Error(Code::invalid, "sandbox id " + coracle::quoted(spec.id) + " is not of [a-z0-9-]{1,64}");
  if (!spec.cgroup_class.empty() && !is_sandbox_id(spec.cgroup_class))
    return Error(Code::invalid, "cgroup class " + coracle::quoted(spec.cgroup_class));
  if (spec.hostname.size() >= pause::kHostnameMax || spec.hostname.find('\0') != spec.hostname.npos)
    return Error(Code::invalid, "hostname " + coracle::quoted(spec.hostname) + " is too long");
  if (spec.host_pid && spec.share_process_namespace)
    return Error(Code::invalid, "a pod cannot share its own process namespace and have the host's");
  return check_user_namespace(spec);
}

}  // namespace

bool is_sandbox_id(const std::string& id) {
  return !id.empty() && id.size() <= 64 && id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == id.npos;
}

bool is_container_id(const std::string& id) {
  constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !id.empty() && id.size() <= 128 && id.find_first_not_of(kAllowed) == id.npos;
}

int exit_code_of(int wait_status) { return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status); }

// ---- life cycle ----

Result<std::shared_ptr<Sandbox>> Sandbox::create(RuntimeContext& context, const SandboxSpec& spec) {
  TRY(check(spec));
  std::shared_ptr<Sandbox> out(new Sandbox(context));
  SandboxRecord& record = out->record_;
  record.id = spec.id;
  record.metadata = spec.metadata;
  record.boot_id = context.boot_id;
  record.cgroup = (spec.cgroup_class.empty() ? "" : spec.cgroup_class + "/") + spec.id;
  record.created_ns = nanoseconds(system_clock().now());
  record.launcher = launch::kLauncherVersion;
  record.host_network = spec.host_network;
  record.host_ipc = spec.host_ipc;
  record.host_pid = spec.host_pid;
  record.shared_pid = spec.share_process_namespace;
  record.uid_mappings = spec.uid_mappings;
  record.gid_mappings = spec.gid_mappings;
  Scope undo([&] { (void)out->remove(); });  // removes what was created
  // The record comes first, so that everything created later can be found and removed.
  TRY(context.records.write(record).wrap("write sandbox record"));
  out->cgroup_ = TRY(context.cgroups.make(record.cgroup, true));
  TRY(context.cgroups.apply(out->cgroup_, spec.resources, false));
  std::optional<sys::OwnedNamespaces> owned;
  if (out->has_user_namespace())
    owned = TRY(sys::make_user_namespace(id_ranges(spec.uid_mappings), id_ranges(spec.gid_mappings), kOwnedNamespaces));
  TRY(out->start_pause(spec));
  TRY(out->set_up_pause(spec, owned ? &*owned : nullptr));
  TRY(out->events_.subscribe());
  out->known_.with([](Known& known) { known.is_alive = true; });
  undo.dismiss();
  return out;
}

Result<void> Sandbox::start_pause(const SandboxSpec& spec) {
  Fd leaf = TRY(context_.cgroups.make(record_.cgroup + "/pause", false));
  (void)sys::unlink_at(context_.run_dir, socket_name());  // left by a dead sandbox with this id
  Fd socket = TRY(sys::bind_unix(context_.run_dir, socket_name(), 0600));
  sys::SpawnSpec start;
  start.program = &context_.pause_program;
  start.name = "coracle-pause";
  start.cgroup = &leaf;
  start.namespaces = namespaces_of(spec);
  start.fd3 = &socket;
  sys::Spawned spawned = TRY(sys::spawn(start).wrap("start coracle-pause"));
  pause_ = std::move(spawned.pidfd);
  pause_pid_ = spawned.pid;
  return {};
}

Result<void> Sandbox::connect() {
  // pause calls listen(2) first; until then connecting fails.
  for (int i = 0;; ++i) {
    auto link = PauseLink::connect(context_.run_dir, socket_name());
    if (link) {
      link_ = std::move(*link);
      break;
    }
    bool has_ended = TRY(sys::wait_readable(pause_, std::chrono::milliseconds(i < 50 ? 0 : 1)));
    constexpr int kTriesMax = 2000;
    if (has_ended || i > kTriesMax || link.error().err() != ECONNREFUSED) return link.take_error();
  }
  events_ = TRY(PauseLink::connect(context_.run_dir, socket_name()));
  return {};
}

Result<void> Sandbox::set_up_pause(const SandboxSpec& spec, const sys::OwnedNamespaces* owned) {
  std::string sysctls = TRY(sysctl_list(spec));
  Fd root = TRY(make_pause_root().wrap("pause root"));
  const IdMaps ids{spec.uid_mappings, spec.gid_mappings};
  Fd shm = TRY(sys::new_file_system("tmpfs",
                                    {{"mode", "1777", true},
                                     {"size", "64m", true},
                                     {"uid", std::to_string(ids.uid(0)), true},
                                     {"gid", std::to_string(ids.gid(0)), true}},
                                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
  Fd null = TRY(sys::clone_mount("/dev/null", false));
  TRY(sys::change_mount(null, {.propagation = 1 << 18 /* MS_PRIVATE */}));
  Fd proc_sys = TRY(open_proc_sys(spec));
  Fd list = TRY(sys::make_memfd("coracle-sysctl", sysctls, true));
  TRY(connect().wrap("connect to coracle-pause"));
  pause::Request request = PauseLink::request(pause::Kind::setup, "");
  if (spec.host_network) request.flags |= pause::kHostNetwork | pause::kHostUts;
  if (spec.share_process_namespace) request.flags |= pause::kSharedPidNamespace;
  std::memcpy(request.log_name, spec.hostname.data(), spec.hostname.size());
  std::vector<int> fds = {root.get(), shm.get(), null.get(), proc_sys.get(), list.get()};
  if (owned) {
    request.flags |= pause::kJoinNamespaces;
    fds.insert(fds.end(), {owned->network.get(), owned->ipc.get(), owned->uts.get()});
  }
  Answer answer = TRY(link_.ask(request, fds));
  if (answer.reply.err == 0) return {};
  oci::Spec named;
  named.hostname = spec.hostname;
  named.linux_.sysctl = spec.sysctl;
  return explain_failure(answer.reply, named, {}).wrap("sandbox");
}

Result<std::shared_ptr<Sandbox>> Sandbox::find(RuntimeContext& context, const std::string& id) {
  std::shared_ptr<Sandbox> out(new Sandbox(context));
  out->record_.id = id;
  out->record_.cgroup = id;
  auto record = context.records.read(id);
  std::vector<ContainerRecord> containers;
  if (record) {
    out->record_ = std::move(*record);
    if (auto found = context.records.containers(id)) containers = std::move(*found);
  }
  auto cgroup = context.cgroups.find(out->record_.cgroup);
  bool is_of_this_boot = record && out->record_.boot_id == context.boot_id && cgroup;
  if (cgroup) out->cgroup_ = std::move(*cgroup);
  out->known_.with([&](Known& known) {
    for (ContainerRecord& each : containers) {
      Container container;
      container.record = std::move(each);
      container.is_started = true;
      std::string name = container.record.id;
      known.containers.emplace(name, std::move(container));
    }
  });
  if (!is_of_this_boot || !out->adopt()) out->mark_dead();
  return out;
}

// Connects to a running pause and reads the state of its containers. False: it is not running.
bool Sandbox::adopt() {
  auto link = PauseLink::connect(context_.run_dir, socket_name());
  if (!link) return false;
  auto pidfd = sys::open_pidfd(link->peer_pid());
  auto events = PauseLink::connect(context_.run_dir, socket_name());
  // Still the same process: if it had ended, the second connection would have failed.
  if (!pidfd || !events || events->peer_pid() != link->peer_pid() || !events->subscribe()) return false;
  link_ = std::move(*link);
  events_ = std::move(*events);
  pause_ = std::move(*pidfd);
  pause_pid_ = link_.peer_pid();
  std::set<std::string> seen, starting;
  for (bool is_synced = false; !is_synced || !starting.empty();) {
    auto message = events_.next(kStateTimeout);
    // A start that hangs is ended below, without the whole sandbox.
    if (!message && is_synced && message.error().code() == Code::timeout) break;
    if (!message) return false;
    if (!*message) continue;
    StateMessage& told = **message;
    if (told.state.kind == pause::Kind::synced) {
      is_synced = true;
      continue;
    }
    // The daemon was killed during a start: the result arrives soon.
    const std::string id = told.state.id;
    if (told.state.status == pause::Status::starting) starting.insert(id);
    else starting.erase(id);
    if (has_begun(told.state)) seen.insert(id);
    apply(told.state, std::move(told.pidfd));
  }
  // A record without a process: the daemon was killed before the start, or the start failed; the container never ran.
  std::vector<ContainerRecord> never_started;
  known_.with([&](Known& known) {
    known.is_alive = true;
    for (auto at = known.containers.begin(); at != known.containers.end();) {
      if (seen.contains(at->first)) {
        ++at;
      } else {
        never_started.push_back(std::move(at->second.record));
        at = known.containers.erase(at);
      }
    }
  });
  for (const ContainerRecord& each : never_started) clean_container(each);
  return true;
}

Result<void> Sandbox::remove() {
  std::lock_guard lock(operations_);
  mark_dead();
  TRY(context_.cgroups.remove(record_.cgroup, kKillTimeout));
  if (pause_) {
    (void)sys::wait_readable(pause_, kKillTimeout);  // it has left its cgroup but may not have ended yet
    sys::reap(pause_);
  }
  (void)sys::unlink_at(context_.run_dir, socket_name());  // it may not exist
  std::vector<ContainerRecord> containers = known_.with([](Known& known) {
    std::vector<ContainerRecord> out;
    for (auto& [id, container] : known.containers) out.push_back(container.record);
    known.containers.clear();
    return out;
  });
  for (const ContainerRecord& each : containers)
    if (!each.snapshot.empty() && context_.snapshots) TRY(context_.snapshots->remove(each.snapshot));
  return context_.records.remove(record_.id);
}

void Sandbox::mark_dead() {
  if (cgroup_) (void)cgroup::kill(cgroup_);  // the kernel did it with pause's pid namespace, if it had one
  std::vector<std::shared_ptr<ExecState>> execs;
  known_.with([&](Known& known) {
    known.is_alive = false;
    for (auto& [id, container] : known.containers) {
      container.is_running = false;
      container.pidfd.reset();
    }
    for (auto& [id, weak] : known.execs)
      if (auto exec = weak.lock()) execs.push_back(std::move(exec));
    known.execs.clear();
  });
  for (auto& exec : execs) {
    exec->inside.with([](ExecState::Inside& inside) {
      if (!inside.wait_status) inside.wait_status = 9;  // the status of SIGKILL
    });
    exec->inside.notify();
  }
}

// ---- known state ----

SandboxState Sandbox::state() const {
  SandboxState out;
  out.id = record_.id;
  out.metadata = record_.metadata;
  out.created = wall_time(uint64_t(record_.created_ns));
  known_.with([&](const Known& known) {
    out.alive = known.is_alive;
    out.pid = known.is_alive ? pause_pid_ : 0;
    for (const auto& [id, container] : known.containers) {
      if (!container.is_started) continue;
      ContainerState each;
      each.id = id;
      each.metadata = container.record.metadata;
      each.running = container.is_running;
      if (container.is_running) each.pid = container.pid;
      each.started = container.started;
      each.exit = container.exit;
      out.containers.push_back(std::move(each));
    }
  });
  return out;
}

bool Sandbox::is_alive() const {
  return known_.with([](const Known& known) { return known.is_alive; });
}

void Sandbox::name_snapshots(std::set<std::string>& out) const {
  known_.with([&](const Known& known) {
    for (const auto& [id, container] : known.containers)
      if (!container.record.snapshot.empty()) out.insert(container.record.snapshot);
  });
}

Result<Fd> Sandbox::network_namespace() const {
  if (!is_alive()) return Error(Code::conflict, "sandbox " + record_.id + " is dead");
  return sys::namespace_of(pause_, "net");
}

SandboxInfo Sandbox::info() const {
  return {.has_network = !record_.host_network,
          .has_ipc = !record_.host_ipc,
          .has_uts = !record_.host_network,
          .host_pid = record_.host_pid,
          .shared_pid = record_.shared_pid,
          .launcher = record_.launcher};
}

// The pod's network namespace belongs to the user namespace, and pause keeps it open. So nothing else must be stored, and a later
// daemon finds it the same way.
Result<std::optional<UserNamespace>> Sandbox::user_namespace() const {
  std::optional<UserNamespace> out;
  if (!has_user_namespace()) return out;
  Fd network = TRY(network_namespace());
  out.emplace();
  out->owned.user = TRY(sys::owner_of_namespace(network).wrap("user namespace of the pod"));
  out->ids = {record_.uid_mappings, record_.gid_mappings};
  return out;
}

bool Sandbox::read_events() {
  while (true) {
    auto message = events_.next(std::nullopt);
    if (!message) {
      sys::reap(pause_);
      mark_dead();
      return false;
    }
    if (!*message) return true;
    if ((*message)->state.kind == pause::Kind::state) apply((*message)->state, std::move((*message)->pidfd));
  }
}

bool Sandbox::was_oom_killed(const std::string& id) const {
  auto cgroup = context_.cgroups.find(container_cgroup(id));
  if (!cgroup) return false;
  return cgroup::oom_kills(*cgroup).value_or(0) > 0;
}

void Sandbox::drop_cgroup(const std::string& id) {
  auto removed = context_.cgroups.remove(container_cgroup(id), std::chrono::milliseconds(0));
  if (!removed && removed.error().code() != Code::timeout)  // killed processes may take longer to end
    log_debug("runtime", "the cgroup of an ended container stays",
              {{"sandbox", record_.id}, {"container", id}, {"error", removed.error().text()}});
}

void Sandbox::apply(const pause::State& state, Fd pidfd) {
  const std::string id = state.id;
  const bool has_ended = state.status == pause::Status::ended;
  if (state.is_exec) {
    std::shared_ptr<ExecState> exec = known_.with([&](Known& known) {
      auto found = known.execs.find(id);
      return found == known.execs.end() ? nullptr : found->second.lock();
    });
    if (!exec || !has_ended) return;
    exec->inside.with([&](ExecState::Inside& inside) { inside.wait_status = state.wait_status; });
    exec->inside.notify();
    return;
  }
  if (!has_begun(state)) return;  // the reply contains the result of the start
  const bool oom_killed = has_ended && was_oom_killed(id);
  if (has_ended && !oom_killed) drop_cgroup(id);
  const int pid = pidfd ? sys::pid_of(pidfd).value_or(0) : 0;
  known_.with([&](Known& known) {
    auto found = known.containers.find(id);
    if (found == known.containers.end()) return;
    Container& container = found->second;
    container.started = wall_time(state.started_ns);
    container.is_running = !has_ended;
    if (!has_ended && pidfd) container.pidfd = std::move(pidfd), container.pid = pid;
    if (!has_ended) return;
    container.pidfd.reset();
    ExitStatus exit;
    exit.exit_code = exit_code_of(state.wait_status);
    exit.signal = WIFSIGNALED(state.wait_status) ? WTERMSIG(state.wait_status) : 0;
    exit.oom_killed = oom_killed;
    exit.started = container.started;
    exit.finished = wall_time(state.finished_ns);
    container.exit = exit;
    container.ended->store(exit.exit_code);
  });
}

}  // namespace coracle::runtime
