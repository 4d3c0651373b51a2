// SPDX-License-Identifier: Apache-2.0
// See launch.h.
#include "runtime/cli/launch.h"

#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/hooks.h"
#include "runtime/cli/log.h"
#include "runtime/cli/notify.h"
#include "runtime/cli/terminal.h"
#include "runtime/container/direct_launch.h"
#include "runtime/container/explain.h"
#include "runtime/oci/parse.h"
#include "runtime/oci/validate.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/netlink.h"
#include "runtime/sys/netns.h"
#include "runtime/sys/process.h"

namespace coracle::cli {
namespace {

using runtime::DirectLaunch;

constexpr size_t kConfigBytesMax = 4 << 20;
constexpr uint32_t kUmask = 022;
constexpr uint32_t kUnchanged = ~uint32_t(0);  // chown(2)

std::string beneath(const std::string& directory, const std::string& path) {
  return path.starts_with("/") ? path : directory + "/" + path;
}

// A directory that the first mount binds over "/" is the root. With options that a root cannot have, the validation refuses it.
// Source: crun
void take_root(oci::Spec& spec) {
  if (spec.mounts.empty() || oci::plain_path(spec.mounts[0].destination) != "/") return;
  static const std::set<std::string> known = {"bind", "rbind", "private", "rprivate", "ro", "rw"};
  const oci::Mount& first = spec.mounts[0];
  auto has = [&](const char* option) { return std::count(first.options.begin(), first.options.end(), option) > 0; };
  const bool is_plain =
      first.uid_mappings.empty() && first.gid_mappings.empty() &&
      std::all_of(first.options.begin(), first.options.end(), [](const std::string& each) { return known.count(each); });
  if (first.source.empty() || !is_plain || !(first.type == "bind" || has("bind") || has("rbind"))) return;
  spec.root.path = first.source;
  spec.root.readonly |= has("ro");
  spec.mounts.erase(spec.mounts.begin());
}

// `file`: replaces the bundle's config.json unless "".
Result<oci::Spec> load_bundle(const std::string& directory, const std::string& file) {
  const std::string name = file.empty() ? "config.json" : file;
  std::string text = TRY(sys::read_file(file.empty() ? directory + "/config.json" : file, kConfigBytesMax));
  json::value config = TRY(parse_json(text, nullptr, arena_for(text)).wrap(name));
  oci::Spec spec = TRY(oci::parse_spec(config).wrap(name));
  drop_unknown_capabilities(spec.process);
  take_root(spec);
  TRY(oci::validate_alone(spec).wrap(name));
  spec.root.path = beneath(directory, spec.root.path);
  for (oci::Mount& mount : spec.mounts)
    if ((mount.type == "bind" || mount.type.empty() || mount.type == "none") && !mount.source.empty())
      mount.source = beneath(directory, mount.source);
  if (!spec.process.user.umask) spec.process.user.umask = kUmask;
  return spec;
}

class Maker {
 public:
  Maker(const Options& options, bool holds) : options_(options), holds_(holds) {}

  // After an error nothing of the container is left.
  Result<void> make() {
    containers_ = TRY(Containers::open_to_create(options_.root));
    TRY(read_bundle());
    container_ = TRY(containers_->create(options_.id));
    Scope undo([&] { take_back(); });
    TRY(prepare_machine());
    TRY(start_process());
    TRY(attend());
    TRY(finish());
    undo.dismiss();
    return {};
  }

  Container& container() { return *container_; }
  Containers& containers() { return *containers_; }
  DirectLaunch& launch() { return *launch_; }
  cgroup::Container& cgroup() { return cgroup_; }
  Fd take_terminal() { return std::move(terminal_); }
  const std::optional<NotifyRelay>& relay() const { return relay_; }  // set if its readiness is to be passed on
  const oci::Spec& spec() const { return spec_; }

 private:
  Result<void> read_bundle() {
    auto directory = sys::absolute_path(options_.bundle);
    bundle_ = TRY(std::move(directory).wrap("--bundle " + options_.bundle));
    spec_ = TRY(load_bundle(bundle_, options_.config));
    given_env_ = spec_.process.env;
    if (!holds_ && !spec_.has_process) return Error(Code::invalid, "process: missing: there is nothing to run");
    const bool has_terminal = spec_.process.terminal;
    if (has_terminal && options_.console_socket.empty() && (holds_ || options_.detach))
      return Error(Code::invalid, "process.terminal is set: --console-socket is missing");
    if (!has_terminal && !options_.console_socket.empty())
      return Error(Code::invalid, "--console-socket: process.terminal is not set");
    return {};
  }

  Result<void> prepare_machine() {
    TRY(leave_privilege_behind(spec_));
    TRY(set_home(spec_.process, sys::open_directory(spec_.root.path)));
    pass_sockets();
    TRY(add_notify_socket(spec_, *container_));
    if (!holds_) relay_ = TRY(NotifyRelay::open(*container_));
    own_ = TRY(runtime::launcher_info());
    sandbox_info_ = sandbox_info_of(spec_);
    namespaces_ = TRY(runtime::plan_namespaces(spec_, sandbox_info_));
    user_ = TRY(runtime::prepare_user_namespace(spec_, namespaces_));
    TRY(tell_missing_capabilities(spec_.process, own_, user_.has_value()));
    auto fails = spec_.annotations.find(kFailUnknownCalls);
    const bool are_calls_checked = fails != spec_.annotations.end() && fails->second != "0";  // any other value. Source: crun
    if (spec_.linux_.seccomp && are_calls_checked) TRY(runtime::check_call_names(*spec_.linux_.seccomp));
    if (spec_.linux_.seccomp) seccomp_ = TRY(load_seccomp(*containers_, *spec_.linux_.seccomp, spec_.process, own_));
    TRY(make_cgroup(0));
    return {};
  }

  // Passes activated sockets to the container. Source: sd_listen_fds(3).
  void pass_sockets() {
    if (options_.listen_fds == 0) return;
    spec_.process.env.push_back("LISTEN_FDS=" + std::to_string(options_.listen_fds));
    spec_.process.env.push_back("LISTEN_PID=1");
    if (std::string names = sys::environment("LISTEN_FDNAMES"); !names.empty())
      spec_.process.env.push_back("LISTEN_FDNAMES=" + names);
  }

  Result<void> make_cgroup(int pid) {
    cgroup::Wanted wanted;
    wanted.manager = TRY(manager_of(options_));
    if (cgroup::Container::needs_process(wanted.manager) != (pid != 0)) return {};
    wanted.id = options_.id;
    wanted.cgroups_path = spec_.linux_.cgroups_path;
    wanted.resources = spec_.linux_.resources;
    wanted.oci_version = spec_.version;
    wanted.annotations = spec_.annotations;
    cgroup::Caller caller = TRY(cgroup::Caller::self(own_.is_host_root));
    cgroup_ = TRY(cgroup::Container::make(caller, wanted, pid));
    for (const std::string& warning : cgroup_.warnings()) warn(warning);
    if (cgroup_.exists() && own_.is_host_root) {
      TRY(cgroup_.filter_devices(runtime::plan_device_rules(spec_)));
      const auto owner = runtime::plan_cgroup_owner(spec_, namespaces_, user_ ? user_->ids : runtime::IdMaps{});
      if (owner && caller.held_by_v1.empty()) TRY(cgroup_.give_to(*owner, kUnchanged));  // beside v1 it would not be safe
    }
    container_->saved().cgroup = cgroup_.record();
    return {};
  }

  Result<runtime::Prepared> prepare() {
    runtime::PrepareInput input;
    input.spec = &spec_;
    input.sandbox = sandbox_info_;
    input.own = own_;
    input.seccomp = seccomp_;
    input.hold = holds_;
    input.user = user_ ? &*user_ : nullptr;
    if (!options_.no_new_keyring) input.keyring = keyring_of(options_.id);
    input.kept_fds = options_.listen_fds + options_.preserve_fds;  // in this order. Source: runc, crun
    input.pivots = !options_.no_pivot;
    input.waits = waits();
    TRY(fill(container_->saved()));
    input.create_state = state_before_pid(Status::creating);
    input.start_state = state_before_pid(Status::created);
    input.state_tail = "}";
    input.root_path = spec_.root.path;
    input.bundle = bundle_;
    input.keeps_groups = spec_.annotations.count(kKeepGroups);
    if (!namespaces_.joined.count("cgroup")) {
      input.sandbox.v1 = TRY(cgroup_.hierarchies());
      input.sandbox.cgroup = cgroup_.record().path;
      input.sandbox.v2_cgroup = cgroup_.host_path();
    }
    auto v1_tasks = TRY(cgroup_.v1_tasks());
    input.v1_tasks = &v1_tasks;
    Fd root;
    if (!namespaces_.joined.count("mount")) {
      root = TRY(runtime::open_root(spec_.root.path, namespaces_.in_host_tree, spec_.linux_.rootfs_propagation));
      input.root_path = TRY(sys::absolute_path(spec_.root.path).wrap("root.path"));  // as the kernel lists its mounts
    }
    return runtime::prepare_container(input, std::move(root));
  }

  bool waits() const {
    auto manager = manager_of(options_);
    return (manager && cgroup::Container::needs_process(*manager)) || !spec_.linux_.net_devices.empty();
  }

  // The state for hooks in the container, in JSON: everything except the pid, which is last.
  std::string state_before_pid(Status status) {
    json::object state = container_->state(status);
    state.erase("pid");
    std::string text = to_text(state);
    text.pop_back();
    return text + ",\"pid\":";
  }

  Result<void> fill(Saved& saved) {
    saved.id = options_.id;
    saved.bundle = bundle_;
    saved.rootfs = spec_.root.path;
    saved.version = spec_.version;
    saved.boot_id = TRY(sys::boot_id());
    saved.created = system_clock().now();
    saved.owner = sys::own_uid();
    saved.annotations = spec_.annotations;
    saved.cgroup = cgroup_.record();
    saved.resources = spec_.linux_.resources;
    saved.process = spec_.process;
    saved.process.env = given_env_;  // an exec as another user has another HOME
    saved.personality = spec_.linux_.personality;
    saved.memory_policy = spec_.linux_.memory_policy;
    if (seccomp_) saved.seccomp_name = seccomp_->name;
    saved.hooks = spec_.hooks;
    saved.has_user_namespace = user_.has_value();
    saved.has_pid_namespace = namespaces_.fresh & CLONE_NEWPID;
    saved.has_mount_namespace = !namespaces_.in_host_tree;
    saved.keeps_keyring = options_.no_new_keyring;
    return {};
  }

  Result<void> start_process() {
    runtime::Prepared prepared = TRY(prepare());
    mounts_ = prepared.mounts;
    Fd start;
    if (holds_) {
      start = TRY(sys::bind_unix(container_->directory(), kStartSocket, 0600).wrap(kStartSocket));
      TRY(sys::listen_unix(start).wrap(kStartSocket));
    }
    Fd time;
    if (namespaces_.new_time) time = TRY(sys::make_time_namespace(offsets()).wrap("linux.timeOffsets"));
    runtime::LaunchSpec launch;
    if (time) launch.time_namespace = &time;
    launch.prepared = &prepared;
    if (cgroup_.exists()) launch.cgroup = &cgroup_.directory();
    if (holds_) launch.start = &start;
    launch.has_terminal = spec_.process.terminal;
    debug("launch");
    launch_ = TRY(DirectLaunch::begin(launch).wrap("launch"));
    Saved& saved = container_->saved();
    saved.pid = launch_->pid();
    ProcessStat info = TRY(process_stat(saved.pid));
    saved.pid_started = info.started;
    if (!waits()) return {};
    TRY(make_cgroup(saved.pid));
    TRY(move_net_devices());
    return launch_->say_go();
  }

  std::vector<sys::ClockOffset> offsets() const {
    std::vector<sys::ClockOffset> out;
    for (const auto& [clock, offset] : spec_.linux_.time_offsets) out.push_back({clock, offset.secs, offset.nanosecs});
    return out;
  }

  Result<void> move_net_devices() {
    if (spec_.linux_.net_devices.empty()) return {};
    Fd netns = TRY(sys::namespace_of(launch_->pidfd(), "net"));
    if (auto joined = namespaces_.joined.find("network"); joined != namespaces_.joined.end())
      netns = TRY(sys::open_netns(joined->second));
    for (const auto& [name, inside] : spec_.linux_.net_devices)
      TRY(sys::move_link_with_addresses(name, netns, inside.empty() ? name : inside).wrap("linux.netDevices: " + name));
    return {};
  }

  // Processes the child's reports until it is held or running.
  Result<void> attend() {
    using Kind = DirectLaunch::News::Kind;
    while (true) {
      DirectLaunch::News news = TRY(launch_->next().wrap("launch"));
      switch (news.kind) {
        case Kind::failure: return runtime::explain_failure(news.failure, spec_, mounts_, news.said);
        case Kind::terminal:
          if (options_.console_socket.empty()) terminal_ = std::move(news.fd);
          else TRY(send_terminal(options_.console_socket, news.fd));
          break;
        case Kind::listener: TRY(send_listener(*seccomp_->listener, hook_state(), launch_->pid(), news.fd)); break;
        case Kind::gate:
          TRY(container_->save());
          TRY(run_hooks(spec_.hooks.prestart, "prestart", container_->state(Status::created)));
          TRY(run_hooks(spec_.hooks.create_runtime, "createRuntime", hook_state()));
          TRY(launch_->say_go());
          break;
        case Kind::held:
        case Kind::executed: return {};
      }
    }
  }

  json::object hook_state() {
    json::object state = container_->state(Status::created);
    state["status"] = name_of(Status::creating);
    return state;
  }

  Result<void> finish() {
    TRY(container_->save());
    auto receiver = spec_.annotations.find(kPidfdReceiver);
    const bool is_annotated = options_.pidfd_socket.empty() && receiver != spec_.annotations.end();
    TRY(send_pidfd(is_annotated ? receiver->second : options_.pidfd_socket, launch_->pidfd()));
    return write_pid_file(options_.pid_file, launch_->pid());
  }

  // Removes everything of the container; the caller reports the error. Once there was a process, hooks may have made something
  // for it: where one fails, "continue the lifecycle at step 12", after which poststop hooks run. Source: runtime-spec
  // runtime.md "Lifecycle"; runc.
  void take_back() {
    if (launch_) launch_->end();
    auto removed = cgroup_.exists() ? cgroup_.kill() : Result<void>();
    if (removed) removed = cgroup_.remove(kKillTimeout);
    if (removed && namespaces_.in_host_tree) removed = sys::detach_below(spec_.root.path);
    if (removed) removed = containers_->remove(options_.id);
    if (!removed) warn("left behind: " + removed.error().text());
    if (launch_) run_late_hooks(spec_.hooks.poststop, "poststop", container_->state(Status::stopped));
  }

  const Options& options_;
  const bool holds_;
  std::optional<Containers> containers_;
  std::optional<Container> container_;
  std::string bundle_;
  oci::Spec spec_;
  std::vector<std::string> given_env_;
  runtime::LauncherInfo own_;
  runtime::SandboxInfo sandbox_info_;
  runtime::NamespacePlan namespaces_;
  std::optional<runtime::UserNamespace> user_;
  runtime::SeccompPtr seccomp_;
  cgroup::Container cgroup_;
  std::vector<std::string> mounts_;
  std::optional<DirectLaunch> launch_;
  std::optional<NotifyRelay> relay_;
  Fd terminal_;
};

}  // namespace

Result<int> create(const Options& options) {
  Maker maker(options, true);
  TRY(maker.make());
  return 0;
}

Result<int> run(const Options& options) {
  Fd signals;
  if (!options.detach) signals = TRY(block_signals());
  Maker maker(options, false);
  TRY(maker.make());
  Container& container = maker.container();
  auto ran = run_hooks(maker.spec().hooks.poststart, "poststart", container.state(Status::running));
  if (!ran) {
    auto gone = destroy(maker.containers(), container, &maker.cgroup());
    if (!gone) warn("stop the container: " + gone.error().text());
    return ran.take_error();
  }
  container.unlock();
  if (options.detach) {
    if (maker.relay()) TRY(maker.relay()->wait(maker.launch().pidfd(), maker.launch().pid()));
    return 0;
  }
  const NotifyRelay* relay = maker.relay() ? &*maker.relay() : nullptr;
  int code = TRY(run_foreground(maker.launch().pidfd(), signals, maker.take_terminal(), relay));
  if (!options.keep) TRY(destroy_ended(maker.containers(), container, &maker.cgroup()));
  return code;
}

}  // namespace coracle::cli
