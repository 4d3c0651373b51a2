// SPDX-License-Identifier: Apache-2.0
// See local_runtime.h.
#include "runtime/container/local_runtime.h"

#include <sys/epoll.h>

#include <set>

#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/oci/defaults.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

constexpr uint64_t kStopKey = 0;

// A sealed copy: a container that gets access to a process between clone and exec cannot modify the program (CVE-2019-5736), and
// an upgrade does not affect running pods.
Result<Fd> load_pause_program(const std::string& path) {
  std::string program = TRY(sys::read_file(path));
  return sys::make_program("coracle-pause", program);
}

Error no_sandbox(const std::string& id) { return Error(Code::not_found, "no sandbox " + id); }

}  // namespace

Result<std::unique_ptr<LocalRuntime>> LocalRuntime::open(const Config& config, std::unique_ptr<ImageStore> images,
                                                         image::Snapshots* snapshots, std::unique_ptr<Trees> trees) {
  sys::raise_open_files();  // two connections and a pidfd per sandbox
  TRY(sys::make_directories(config.state_dir, 0700).wrap("runtime state"));
  TRY(sys::make_directories(config.run_dir, 0700).wrap("run directory"));
  Fd lock = TRY(sys::lock_file(config.state_dir + "/lock").wrap("runtime state"));
  Fd pause_program = TRY(load_pause_program(config.pause_program).wrap("coracle-pause"));
  cgroup::Cgroups cgroups = TRY(cgroup::Cgroups::open(config.cgroup_root, config.cgroup_unit).wrap("cgroups"));
  Records records = TRY(Records::open(config.state_dir));
  Fd run_dir = TRY(sys::open_directory(config.run_dir));
  std::string boot_id = TRY(sys::boot_id());
  LauncherInfo own = TRY(launcher_info());
  RuntimeContext context{std::move(cgroups),
                         std::move(records),
                         std::make_unique<SeccompCache>(config.state_dir + "/seccomp"),
                         snapshots,
                         std::move(run_dir),
                         std::move(pause_program),
                         std::move(boot_id),
                         own,
                         std::make_unique<DevicePrograms>()};
  std::unique_ptr<LocalRuntime> out(new LocalRuntime(std::move(context)));
  out->images_ = std::move(images);
  out->trees_ = std::move(trees);
  out->lock_ = std::move(lock);
  out->epoll_ = TRY(sys::make_epoll());
  out->stop_ = TRY(sys::make_eventfd());
  TRY(sys::epoll_add(out->epoll_, out->stop_, EPOLLIN, kStopKey));
  TRY(out->find_sandboxes().wrap("find sandboxes"));
  out->listener_ = start_thread("runtime", [runtime = out.get()] { runtime->listen(); });
  return out;
}

LocalRuntime::~LocalRuntime() {
  if (stop_) sys::signal_eventfd(stop_);
  if (listener_.joinable()) listener_.join();
}

Result<void> LocalRuntime::find_sandboxes() {
  auto ids = TRY(context_.records.list());
  for (const std::string& id : ids) {
    if (!is_sandbox_id(id)) continue;  // not a sandbox
    auto sandbox = Sandbox::find(context_, id);
    if (!sandbox) {
      log_warning("runtime", "sandbox cannot be read", {{"sandbox", id}, {"error", sandbox.error().text()}});
      continue;
    }
    bool is_alive = (*sandbox)->is_alive();
    all_.with([&](All& all) { all.by_id[id].sandbox = *sandbox; });
    if (is_alive) TRY(listen_to(id, std::move(*sandbox)));
  }
  return {};
}

void LocalRuntime::drop_stray_snapshots() {
  if (!context_.snapshots) return;
  auto names = context_.snapshots->list();
  if (!names) return;
  std::set<std::string> known;
  all_.with([&](All& all) {
    for (auto& [id, entry] : all.by_id)
      if (entry.sandbox) entry.sandbox->name_snapshots(known);
  });
  for (const std::string& name : *names) {
    if (known.count(name)) continue;
    auto removed = context_.snapshots->remove(name);
    if (!removed)
      log_warning("runtime", "cannot remove a snapshot without a container", {{"name", name}, {"error", removed.error().text()}});
  }
}

// ---- events ----

Result<void> LocalRuntime::listen_to(const std::string& id, std::shared_ptr<Sandbox> sandbox) {
  uint64_t key = all_.with([&](All& all) {
    Entry& entry = all.by_id[id];
    entry.sandbox = sandbox;
    return entry.key = ++all.last_key;
  });
  return sys::epoll_add(epoll_, sandbox->events(), EPOLLIN | EPOLLRDHUP, key);
}

void LocalRuntime::listen() {
  while (true) {
    auto ready = sys::epoll_wait(epoll_, std::nullopt);
    if (!ready) {
      log_error("runtime", "the event loop has failed, exits of containers are not seen any more",
                {{"error", ready.error().text()}});
      return;
    }
    for (const sys::Ready& each : *ready) {
      if (each.key == kStopKey) return;
      on_epoll_event(each.key);
    }
  }
}

void LocalRuntime::on_epoll_event(uint64_t key) {
  std::shared_ptr<Sandbox> sandbox = all_.with([&](All& all) -> std::shared_ptr<Sandbox> {
    for (auto& [id, entry] : all.by_id)
      if (entry.key == key) return entry.sandbox;
    return nullptr;
  });
  if (!sandbox) return;  // removed meanwhile
  if (!sandbox->read_events()) sys::epoll_remove(epoll_, sandbox->events());
  tell(sandbox->id());
}

void LocalRuntime::on_change(std::function<void(const std::string&)> notify) {
  auto shared = notify ? std::make_shared<const std::function<void(const std::string&)>>(std::move(notify)) : nullptr;
  notify_.with([&](auto& current) { current = std::move(shared); });
}

void LocalRuntime::tell(const std::string& id) {
  auto notify = notify_.with([](auto& current) { return current; });
  if (notify) (*notify)(id);
}

// ---- sandboxes ----

Result<std::shared_ptr<Sandbox>> LocalRuntime::get(const std::string& id) {
  auto found = all_.with([&](All& all) -> std::shared_ptr<Sandbox> {
    auto at = all.by_id.find(id);
    return at == all.by_id.end() ? nullptr : at->second.sandbox;
  });
  if (!found) return no_sandbox(id);
  return found;
}

Result<std::vector<SandboxState>> LocalRuntime::sandboxes() {
  std::vector<std::shared_ptr<Sandbox>> found;
  all_.with([&](All& all) {
    for (auto& [id, entry] : all.by_id)
      if (entry.sandbox) found.push_back(entry.sandbox);
  });
  std::vector<SandboxState> out;
  for (const auto& sandbox : found) out.push_back(sandbox->state());
  return out;
}

Result<SandboxState> LocalRuntime::sandbox(const std::string& id) {
  auto found = TRY(get(id));
  return found->state();
}

Result<void> LocalRuntime::create_sandbox(const SandboxSpec& spec) {
  bool is_free = all_.with([&](All& all) { return all.by_id.try_emplace(spec.id).second; });
  if (!is_free) return Error(Code::already_exists, "sandbox " + spec.id + " exists");
  Scope undo([&] { all_.with([&](All& all) { all.by_id.erase(spec.id); }); });
  std::shared_ptr<Sandbox> sandbox = TRY(Sandbox::create(context_, spec).wrap("create sandbox"));
  undo.dismiss();
  return listen_to(spec.id, std::move(sandbox));
}

Result<Fd> LocalRuntime::network_namespace(const std::string& id) {
  auto found = TRY(get(id));
  return found->network_namespace();
}

Result<void> LocalRuntime::remove_sandbox(const std::string& id) {
  auto found = get(id);
  if (!found) return {};
  if ((*found)->events()) sys::epoll_remove(epoll_, (*found)->events());
  TRY((*found)->remove().wrap("remove sandbox " + id));
  all_.with([&](All& all) { all.by_id.erase(id); });
  return {};
}

Result<void> LocalRuntime::set_class_weight(const std::string& cgroup_class, uint64_t weight) {
  if (!is_sandbox_id(cgroup_class)) return Error(Code::invalid, "cgroup class " + coracle::quoted(cgroup_class));
  if (!context_.cgroups.enforcement().cpu) return {};
  Fd group = TRY(context_.cgroups.make(cgroup_class, true));
  return sys::write_control(group, "cpu.weight", std::to_string(weight));
}

// ---- containers ----

Result<void> LocalRuntime::start_container(const std::string& sandbox_id, const ContainerSpec& spec) {
  auto found = TRY(get(sandbox_id));
  TRY(found->start_container(spec).wrap("start container " + spec.id));
  return {};
}

Result<void> LocalRuntime::signal_container(const std::string& sandbox_id, const std::string& id, int signal) {
  auto found = TRY(get(sandbox_id));
  return found->signal_container(id, signal);
}

Result<void> LocalRuntime::kill_container(const std::string& sandbox_id, const std::string& id) {
  auto found = TRY(get(sandbox_id));
  return found->kill_container(id);
}

Result<void> LocalRuntime::remove_container(const std::string& sandbox_id, const std::string& id) {
  auto found = get(sandbox_id);
  if (!found) return {};
  return (*found)->remove_container(id).wrap("remove container " + id);
}

Result<std::unique_ptr<Exec>> LocalRuntime::exec(const std::string& sandbox_id, const std::string& id, const ExecSpec& spec) {
  auto found = TRY(get(sandbox_id));
  return found->exec(id, spec);
}

Result<std::unique_ptr<Exec>> LocalRuntime::attach(const std::string& sandbox_id, const std::string& id, bool use_stdin) {
  auto found = TRY(get(sandbox_id));
  return found->attach(id, use_stdin);
}

Result<Usage> LocalRuntime::usage(const std::string& sandbox_id, const std::string& container_id) {
  auto found = TRY(get(sandbox_id));
  return found->usage(container_id);
}

Result<Fd> LocalRuntime::writable_layer(const std::string& sandbox_id, const std::string& id) {
  auto found = TRY(get(sandbox_id));
  return found->writable_layer(id);
}

Result<Fd> LocalRuntime::container_root(const std::string& sandbox_id, const std::string& id) {
  auto found = TRY(get(sandbox_id));
  return found->container_root(id);
}

oci::Spec default_spec() { return oci::default_spec(); }
const json::value& default_seccomp() { return oci::default_seccomp(); }

}  // namespace coracle::runtime
