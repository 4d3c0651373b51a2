// SPDX-License-Identifier: Apache-2.0
// See sandbox.h: operations on containers and execs.
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <chrono>

#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/cgroup/control.h"
#include "runtime/container/explain.h"
#include "runtime/container/sandbox.h"
#include "runtime/oci/validate.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

Error no_container(const std::string& id) { return Error(Code::not_found, "no container " + coracle::quoted(id)); }

// A keyring of this name is joined if there is one that lets us search it. Containers of other pods can make theirs so, and know
// ids like "nginx-0": the time is what they cannot know. Source: keyctl(2), KEYCTL_JOIN_SESSION_KEYRING
std::string keyring_name(const std::string& id) {
  return id + ":" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
}

struct LogPlace {
  Fd directory;
  std::string name;
};

Result<LogPlace> open_log_place(const LogPolicy& policy) {
  LogPlace out;
  size_t slash = policy.path.rfind('/');
  if (slash == policy.path.npos) return Error(Code::invalid, "log path " + coracle::quoted(policy.path) + " is not absolute");
  out.name = policy.path.substr(slash + 1);
  if (out.name.empty() || out.name.size() + 8 > pause::kLogNameMax)
    return Error(Code::invalid, "log path " + coracle::quoted(policy.path) + " has no proper name");
  out.directory = TRY(sys::open_directory(slash == 0 ? "/" : policy.path.substr(0, slash)).wrap("log directory"));
  return out;
}

// The Exec of a started process. The sandbox's subscription reports its end.
class RunningExec : public Exec {
 public:
  RunningExec(std::shared_ptr<Sandbox> sandbox, std::string id, std::shared_ptr<ExecState> state, Fd pidfd)
      : sandbox_(std::move(sandbox)), id_(std::move(id)), state_(std::move(state)), pidfd_(std::move(pidfd)) {}
  ~RunningExec() override {
    bool has_ended = state_->inside.with([](ExecState::Inside& inside) { return inside.wait_status.has_value(); });
    if (!has_ended) (void)sys::send_signal(pidfd_, SIGKILL);  // it may have ended
    sandbox_->forget(id_);
  }
  void give(Fd in, Fd out, Fd err, Fd terminal) {
    stdin_ = std::move(in);
    stdout_ = std::move(out);
    stderr_ = std::move(err);
    terminal_ = std::move(terminal);
  }
  Fd take_stdin() override { return std::move(stdin_); }
  Fd take_stdout() override { return std::move(stdout_); }
  Fd take_stderr() override { return std::move(stderr_); }
  Result<void> resize(uint16_t width, uint16_t height) override {
    if (!terminal_) return Error(Code::invalid, "the process has no terminal");
    return sys::set_window_size(terminal_, width, height);
  }
  Result<int> wait(std::stop_token stop) override {
    auto status = state_->inside.wait(
        stop, [](ExecState::Inside& inside) { return inside.wait_status.has_value(); },
        [](ExecState::Inside& inside) { return inside.wait_status; });
    if (!status) return Error(Code::cancelled, "wait was cancelled");
    return exit_code_of(*status);
  }

 private:
  std::shared_ptr<Sandbox> sandbox_;
  std::string id_;
  std::shared_ptr<ExecState> state_;
  Fd pidfd_, stdin_, stdout_, stderr_, terminal_;
};

// An attachment to a container's streams. The destructor detaches and does not affect the container.
class Attached : public Exec {
 public:
  Attached(std::shared_ptr<Sandbox> sandbox, std::shared_ptr<std::atomic<int>> exit_code, Fd in, Fd out, Fd err, Fd terminal,
           Fd pidfd)
      : sandbox_(std::move(sandbox)),
        exit_code_(std::move(exit_code)),
        stdin_(std::move(in)),
        stdout_(std::move(out)),
        stderr_(std::move(err)),
        terminal_(std::move(terminal)),
        pidfd_(std::move(pidfd)) {}
  Fd take_stdin() override { return std::move(stdin_); }
  Fd take_stdout() override { return std::move(stdout_); }
  Fd take_stderr() override { return std::move(stderr_); }
  Result<void> resize(uint16_t width, uint16_t height) override {
    if (!terminal_) return Error(Code::invalid, "the process has no terminal");
    return sys::set_window_size(terminal_, width, height);
  }
  Result<int> wait(std::stop_token stop) override {
    Fd wake = TRY(sys::make_eventfd());
    std::stop_callback on_stop(stop, [&] { sys::signal_eventfd(wake); });
    Fd epoll = TRY(sys::make_epoll());
    TRY(sys::epoll_add(epoll, wake, 1 /* EPOLLIN */, 0));
    TRY(sys::epoll_add(epoll, pidfd_, 1, 1));
    while (true) {
      if (stop.stop_requested()) return Error(Code::cancelled, "wait was cancelled");
      bool alive = sandbox_->is_alive();  // read first: a removed sandbox has reported its exits
      if (int code = exit_code_->load(); code >= 0) return code;
      if (!alive) return Error(Code::unavailable, "the sandbox is dead");
      auto ready = TRY(sys::epoll_wait(epoll, std::nullopt));
      bool has_ended = false;
      for (const sys::Ready& each : ready) has_ended |= each.key == 1;
      // The process has ended; pause reports its exit status within moments.
      constexpr std::chrono::milliseconds kMoment{2};
      if (has_ended) (void)sys::wait_readable(wake, kMoment);
    }
  }

 private:
  std::shared_ptr<Sandbox> sandbox_;
  std::shared_ptr<std::atomic<int>> exit_code_;
  Fd stdin_, stdout_, stderr_, terminal_, pidfd_;
};

}  // namespace

Result<Answer> Sandbox::ask(const pause::Request& request, std::span<const int> fds) {
  auto answer = link_.ask(request, fds);
  // A late reply would be taken for the next request's, so the connection is replaced.
  if (!answer && answer.error().code() == Code::timeout) {
    auto again = PauseLink::connect(context_.run_dir, socket_name());
    if (again) link_ = std::move(*again);
  }
  return answer;
}

// ---- start ----

Result<void> Sandbox::start_container(const ContainerSpec& spec) {
  if (!is_container_id(spec.id)) return Error(Code::invalid, "container id " + coracle::quoted(spec.id) + " is malformed");
  TRY(oci::validate(spec.spec));
  std::lock_guard lock(operations_);
  if (!is_alive()) return Error(Code::conflict, "sandbox " + record_.id + " is dead");
  bool is_free = known_.with([&](Known& known) { return known.containers.count(spec.id) == 0; });
  if (!is_free) return Error(Code::conflict, "container id " + spec.id + " is in use");
  const auto user = TRY(user_namespace());
  SeccompPtr seccomp;
  ContainerRecord record;
  if (spec.spec.linux_.seccomp) {
    uint64_t holds = 0;
    if (spec.spec.process.capabilities) {
      LauncherInfo own = context_.own;
      if (user) own.capabilities = ~uint64_t(0);  // its root has all capabilities
      CapabilitySets sets = TRY(plan_capabilities(*spec.spec.process.capabilities, own));
      holds = sets.bounding;
    }
    seccomp = TRY(context_.seccomp->get(*spec.spec.linux_.seccomp, holds));
    record.seccomp_name = seccomp->name;
  }
  record.id = spec.id;
  record.metadata = spec.metadata;
  record.process = spec.spec.process;
  if (!spec.image_id.empty()) record.snapshot = record_.id + "." + spec.id;
  Scope undo([&] {
    known_.with([&](Known& known) { known.containers.erase(spec.id); });
    clean_container(record);
  });
  TRY(context_.records.write(record_.id, record).wrap("write container record"));
  known_.with([&](Known& known) { known.containers[spec.id].record = record; });
  TRY(launch(spec, record, std::move(seccomp), user ? &*user : nullptr));
  undo.dismiss();
  return {};
}

Result<void> Sandbox::launch(const ContainerSpec& spec, const ContainerRecord& record, SeccompPtr seccomp,
                             const UserNamespace* user) {
  PrepareInput input;
  input.user = user;
  input.spec = &spec.spec;
  input.sandbox = info();
  input.own = context_.own;
  input.seccomp = std::move(seccomp);
  input.keyring = keyring_name(spec.id);
  Fd cgroup = TRY(make_container_cgroup(spec));
  Fd root = TRY(make_root(spec, record, user));
  Prepared prepared = TRY(prepare_container(input, std::move(root)));
  pause::Request request = PauseLink::request(pause::Kind::launch, spec.id);
  request.flags = prepared.request_flags;
  if (!spec.target.empty() && request.flags & pause::kNewPidNamespace) {
    if (record_.launcher < launch::kLauncherTargets)
      return Error(Code::unsupported, "the pod was begun by an earlier version of coracled: it shows no container's processes");
    request.flags = (request.flags & ~uint32_t(pause::kNewPidNamespace)) | pause::kTargetPidNamespace;
    spec.target.copy(request.target, pause::kIdMax - 1);
  }
  if (spec.open_stdin) request.flags |= pause::kOpenStdin;
  if (spec.stdin_once) request.flags |= pause::kStdinOnce;
  LogPlace log;
  if (!spec.log.path.empty()) {
    log = TRY(open_log_place(spec.log));
    request.flags |= pause::kHasLog;
    request.log_rotate_bytes = uint64_t(std::max<int64_t>(0, spec.log.rotate_at.count));
    request.log_files = uint32_t(std::max(1, spec.log.files));
    log.name.copy(request.log_name, pause::kLogNameMax - 1);
  }
  const Fd* streams[3] = {};
  if (spec.streams) {
    request.flags |= pause::kInheritStdio;
    for (int i = 0; i < 3; ++i) streams[i] = &(*spec.streams)[size_t(i)];
  }
  Answer answer = TRY(ask(request, prepared.in_order(&cgroup, streams, log.directory ? &log.directory : nullptr)));
  if (answer.reply.err != 0) return explain_failure(answer.reply, spec.spec, prepared.mounts);
  Fd pidfd = answer.fds.empty() ? Fd() : std::move(answer.fds[0]);
  const int pid = pidfd ? sys::pid_of(pidfd).value_or(0) : 0;
  known_.with([&](Known& known) {
    Container& container = known.containers[spec.id];
    container.is_started = true;
    if (container.exit) return;  // ended meanwhile
    container.is_running = true;
    container.started =
        WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(answer.reply.started_ns)));
    container.pidfd = std::move(pidfd);
    container.pid = pid;
  });
  return {};
}

Result<Fd> Sandbox::make_container_cgroup(const ContainerSpec& spec) {
  Fd cgroup = TRY(context_.cgroups.make(container_cgroup(spec.id), false));
  TRY(context_.cgroups.apply(cgroup, spec.spec.linux_.resources, true));
  TRY(filter_devices(cgroup, spec.spec));
  return cgroup;
}

Result<void> Sandbox::filter_devices(const Fd& cgroup, const oci::Spec& spec) {
  std::vector<sys::DeviceMatch> rules = plan_device_rules(spec);
  if (rules.size() > sys::kDeviceRulesMax) return Error(Code::too_large, "linux.resources.devices");
  std::vector<uint64_t> text = sys::device_program(rules);
  auto loaded = context_.device_programs->with([&](auto& programs) {
    auto found = programs.find(text);
    return found == programs.end() ? nullptr : found->second;
  });
  if (!loaded) {
    Fd program = TRY(sys::load_device_program(text));
    loaded = std::make_shared<const Fd>(std::move(program));
    constexpr size_t kProgramsMax = 64;
    context_.device_programs->with([&](auto& programs) {
      if (programs.size() >= kProgramsMax) programs.clear();  // attached programs stay loaded
      programs[text] = loaded;
    });
  }
  return sys::attach_device_program(cgroup, *loaded);
}

Result<Fd> Sandbox::make_root(const ContainerSpec& spec, const ContainerRecord& record, const UserNamespace* user) {
  const Fd* id_map = user ? &user->owned.user : nullptr;
  if (record.snapshot.empty()) {
    Fd root = TRY(open_root(spec.spec.root.path));
    if (id_map) TRY(sys::change_mount(root, {.id_map = id_map}).wrap("root: " + spec.spec.root.path + " cannot be id-mapped"));
    return root;
  }
  if (!context_.snapshots) return Error(Code::unsupported, "this runtime has no images");
  TRY(context_.snapshots->create(record.snapshot, spec.image_id, id_map));
  return context_.snapshots->mount(record.snapshot, id_map);
}

// Removes what an exited container leaves: cgroup, writable layer, record.
void Sandbox::clean_container(const ContainerRecord& record) {
  auto cleaned = context_.cgroups.remove(container_cgroup(record.id), kKillTimeout);
  if (cleaned && !record.snapshot.empty() && context_.snapshots) cleaned = context_.snapshots->remove(record.snapshot);
  if (cleaned) cleaned = context_.records.remove(record_.id, record.id);
  if (!cleaned)
    log_warning("runtime", "container left something behind",
                {{"sandbox", record_.id}, {"container", record.id}, {"error", cleaned.error().text()}});
}

// ---- operations on a container ----

Result<void> Sandbox::signal_container(const std::string& id, int signal) {
  return known_.with([&](Known& known) -> Result<void> {
    auto found = known.containers.find(id);
    if (found == known.containers.end() || !found->second.is_started) return no_container(id);
    if (!found->second.is_running || !found->second.pidfd) return {};
    auto sent = sys::send_signal(found->second.pidfd, signal);
    if (!sent && sent.error().code() != Code::not_found) return sent.take_error();
    return {};
  });
}

Result<void> Sandbox::kill_container(const std::string& id) {
  bool is_there = known_.with([&](Known& known) { return known.containers.count(id) > 0; });
  if (!is_there) return no_container(id);
  auto cgroup = context_.cgroups.find(container_cgroup(id));
  if (!cgroup && cgroup.error().code() == Code::not_found) return {};
  if (!cgroup) return cgroup.take_error();
  return cgroup::kill(*cgroup);
}

Result<void> Sandbox::remove_container(const std::string& id) {
  std::lock_guard lock(operations_);
  std::optional<ContainerRecord> record;
  bool is_running = false;
  known_.with([&](Known& known) {
    auto found = known.containers.find(id);
    if (found == known.containers.end()) return;
    record = found->second.record;
    is_running = found->second.is_running;
  });
  if (!record) return {};
  if (is_running) return Error(Code::conflict, "container " + id + " is running");
  if (is_alive()) {
    Answer answer = TRY(ask(PauseLink::request(pause::Kind::forget, id), {}));
    if (answer.reply.err != 0) return explain_failure(answer.reply, {}, {});
  }
  TRY(context_.cgroups.remove(container_cgroup(id), kKillTimeout));
  if (!record->snapshot.empty() && context_.snapshots) TRY(context_.snapshots->remove(record->snapshot));
  TRY(context_.records.remove(record_.id, id));
  known_.with([&](Known& known) { known.containers.erase(id); });
  return {};
}

Result<Usage> Sandbox::usage(const std::string& container_id) {
  Fd cgroup = TRY(context_.cgroups.find(container_id.empty() ? record_.cgroup : container_cgroup(container_id)));
  return cgroup::usage(cgroup);
}

Result<Fd> Sandbox::writable_layer(const std::string& id) {
  auto snapshot = known_.with([&](const Known& known) {
    auto found = known.containers.find(id);
    return found == known.containers.end() ? std::string() : found->second.record.snapshot;
  });
  if (snapshot.empty() || !context_.snapshots) return no_container(id);
  return context_.snapshots->writable(snapshot);
}

Result<Fd> Sandbox::container_root(const std::string& id) {
  Fd pidfd;
  TRY(known_.with([&](Known& known) -> Result<void> {
    auto found = known.containers.find(id);
    if (found == known.containers.end() || !found->second.is_started) return no_container(id);
    if (!found->second.pidfd) return Error(Code::not_found, "container " + id + " is not running");
    pidfd = TRY(sys::duplicate(found->second.pidfd));
    return {};
  }));
  return sys::root_of(pidfd);
}

// ---- exec and attach ----

Result<oci::Process> Sandbox::exec_process(const std::string& id, const ExecSpec& spec, ContainerRecord& record) {
  bool is_running = false, is_there = false;
  known_.with([&](Known& known) {
    auto found = known.containers.find(id);
    if (found == known.containers.end() || !found->second.is_started) return;
    is_there = true;
    is_running = found->second.is_running;
    record = found->second.record;
  });
  if (!is_there) return no_container(id);
  if (!is_running) return Error(Code::conflict, "container " + id + " is not running");
  oci::Process process = record.process;
  process.args = spec.args;
  if (spec.env) process.env = *spec.env;
  process.env.insert(process.env.end(), spec.extra_env.begin(), spec.extra_env.end());
  if (!spec.cwd.empty()) process.cwd = spec.cwd;
  process.terminal = spec.terminal;
  process.console_width = spec.width;
  process.console_height = spec.height;
  oci::Spec checked;
  checked.process = process;
  TRY(oci::validate(checked));
  return process;
}

Result<std::unique_ptr<Exec>> Sandbox::exec(const std::string& id, const ExecSpec& spec) {
  std::lock_guard lock(operations_);
  ContainerRecord record;
  oci::Process process = TRY(exec_process(id, spec, record));
  const auto user = TRY(user_namespace());
  PrepareInput input;
  input.user = user ? &*user : nullptr;
  oci::Spec plain;
  plain.process = process;
  input.spec = &plain;
  input.sandbox = info();
  input.own = context_.own;
  input.keyring = keyring_name(id);
  if (!record.seccomp_name.empty()) input.seccomp = TRY(context_.seccomp->find(record.seccomp_name).wrap("seccomp"));
  Prepared prepared = TRY(prepare_exec(input, process));
  Fd cgroup = TRY(context_.cgroups.find(container_cgroup(id)));

  sys::Pipe in, out, err;
  Fd null;
  if (!spec.terminal && !spec.streams) {
    if (spec.use_stdin) {
      in = TRY(sys::make_pipe());
    } else {
      null = TRY(sys::open("/dev/null", O_RDONLY));
    }
    out = TRY(sys::make_pipe());
    err = TRY(sys::make_pipe());
  }
  const Fd* streams[3] = {spec.use_stdin ? &in.read : &null, &out.write, &err.write};
  if (spec.streams)
    for (int i = 0; i < 3; ++i) streams[i] = &(*spec.streams)[size_t(i)];
  const std::string exec_id =
      "exec:" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + ":" + std::to_string(++execs_made_);
  pause::Request request = PauseLink::request(pause::Kind::exec, exec_id);
  request.flags = prepared.request_flags;
  id.copy(request.target, pause::kIdMax - 1);
  auto state = std::make_shared<ExecState>();
  known_.with([&](Known& known) { known.execs[exec_id] = state; });
  Scope forget_it([&] { known_.with([&](Known& known) { known.execs.erase(exec_id); }); });
  Answer answer = TRY(ask(request, prepared.in_order(&cgroup, streams, nullptr)));
  if (answer.reply.err != 0) return explain_failure(answer.reply, plain, {});
  if (answer.fds.size() != (spec.terminal ? 2u : 1u)) return Error(Code::internal, "coracle-pause sent no process");
  forget_it.dismiss();
  auto made = std::make_unique<RunningExec>(shared_from_this(), exec_id, std::move(state), std::move(answer.fds[0]));
  if (spec.terminal) {
    Fd terminal = std::move(answer.fds[1]);
    Fd reader = TRY(sys::duplicate(terminal));
    Fd writer;
    if (spec.use_stdin) writer = TRY(sys::duplicate(terminal));
    made->give(std::move(writer), std::move(reader), Fd(), std::move(terminal));
  } else {
    made->give(std::move(in.write), std::move(out.read), std::move(err.read), Fd());
  }
  return std::unique_ptr<Exec>(std::move(made));
}

void Sandbox::forget(const std::string& process_id) {
  std::lock_guard lock(operations_);
  known_.with([&](Known& known) { known.execs.erase(process_id); });
  if (!is_alive()) return;
  // A process that was just killed may not have ended yet: then pause drops it by itself.
  (void)ask(PauseLink::request(pause::Kind::forget, process_id), {});
}

Result<std::unique_ptr<Exec>> Sandbox::attach(const std::string& id, bool use_stdin) {
  std::lock_guard lock(operations_);
  Fd pidfd;
  bool has_terminal = false;
  std::shared_ptr<std::atomic<int>> exit_code;
  TRY(known_.with([&](Known& known) -> Result<void> {
    auto found = known.containers.find(id);
    if (found == known.containers.end() || !found->second.is_started) return no_container(id);
    if (!found->second.is_running) return Error(Code::conflict, "container " + id + " is not running");
    has_terminal = found->second.record.process.terminal;
    pidfd = TRY(sys::duplicate(found->second.pidfd));
    exit_code = found->second.ended;
    return {};
  }));
  sys::Pipe out = TRY(sys::make_pipe());
  sys::Pipe err = TRY(sys::make_pipe());
  pause::Request request = PauseLink::request(pause::Kind::attach, id);
  if (use_stdin) request.flags |= pause::kWantStdin;
  const int fds[] = {out.write.get(), err.write.get()};
  Answer answer = TRY(ask(request, fds));
  if (answer.reply.err != 0) return explain_failure(answer.reply, {}, {});
  Fd input, terminal;
  if (!answer.fds.empty() && has_terminal) {
    terminal = std::move(answer.fds[0]);
    if (use_stdin) input = TRY(sys::duplicate(terminal));
  } else if (!answer.fds.empty() && use_stdin) {
    input = std::move(answer.fds[0]);
  }
  return std::unique_ptr<Exec>(std::make_unique<Attached>(shared_from_this(), std::move(exit_code), std::move(input),
                                                          std::move(out.read), std::move(err.read), std::move(terminal),
                                                          std::move(pidfd)));
}

}  // namespace coracle::runtime
