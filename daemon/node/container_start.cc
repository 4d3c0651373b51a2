// SPDX-License-Identifier: Apache-2.0
// Starts a container. See container_start.h.
#include "daemon/node/container_start.h"

#include <cerrno>

#include "daemon/node/admit.h"
#include "daemon/node/environment.h"
#include "daemon/node/files.h"
#include "daemon/node/network_files.h"
#include "daemon/node/status.h"
#include "daemon/node/stream/log_links.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr int kLogsKept = 2;  // of the running attempt and the one before
constexpr Bytes kSharedMemory = 64_MiB;
constexpr std::chrono::seconds kPostStartTimeout{3600};

std::string read_host_file(const AgentConfig& config, const char* path) {
  return sys::read_file(config.host_root + path, 1 << 20).value_or("");
}

// The machine's real resolvers, because a stub resolver on loopback is not reachable from a pod's network.
ResolvConf host_resolv_conf(const AgentConfig& config) {
  ResolvConf conf = ResolvConf::parse(read_host_file(config, "/etc/resolv.conf"));
  bool stub = !conf.nameservers.empty() && conf.nameservers.front() == "127.0.0.53";
  if (!stub) return conf;
  ResolvConf behind = ResolvConf::parse(read_host_file(config, "/run/systemd/resolve/resolv.conf"));
  return behind.nameservers.empty() ? conf : behind;
}

}  // namespace

Result<void> ContainerStart::start(const std::string& name) {
  const ContainerRef* container = containers().find(name);
  ContainerRecord* record = record_.find(name);
  if (!container || !record) return {};
  if (desired_.refused) {  // its values may mean something else: user 4294967296 would be root
    config_error(*container, *record, kConfigError, Error(Code::invalid, *desired_.refused));
    return {};
  }
  const bool needs_another = container->role == Role::ephemeral && mounts_alone(pod(), *container);
  if (!record_.volumes_ready || needs_another || Volumes::need_server(pod(), seams_.storage)) TRY(volumes_.prepare());
  else TRY(volumes_.ask_places());
  auto image = images_.image_for(*container, *record);
  bool volumes_shown =
      images_.mount_images(*container, *record);  // before the check of either, so that all pulls run concurrently
  if (!image || !volumes_shown) return {};
  int attempt = record->attempt + 1;
  auto spec = container_spec(*container, *record, *image, attempt);
  if (!spec) {
    config_error(*container, *record, kConfigError, spec.error());
    return {};
  }
  begin_attempt(*record, attempt);
  record->mark = ContainerMark::from_text(spec->metadata);
  event(false, "Created", "Created container: " + name, container);
  auto started = seams_.runtime.start_container(uid_, *spec);
  if (!started && started.error().err() == ENOSPC && free_disk_space(*record))
    started = seams_.runtime.start_container(uid_, *spec);
  if (started) note_started(*container, *record);
  else note_start_failed(*container, *record, attempt, started.error());
  remove_old_attempts(*record);
  return {};
}

// ---- container spec ----

Result<runtime::ContainerSpec> ContainerStart::container_spec(const ContainerRef& container, const ContainerRecord& record,
                                                              const runtime::Image& image, int attempt) {
  const json::value& spec = *container.spec;
  ContainerInputs inputs;
  inputs.image = image;
  inputs.attempt = attempt;
  inputs.environment = TRY(make_environment(pod(), spec, lookup(), identity()));
  inputs.user = TRY(seams_.runtime.images().resolve_user(image, user_of(pod(), spec, image.config)));
  inputs.volumes = TRY(node_volumes_.mounts(pod(), spec, paths_, inputs.environment, seams_.storage));
  inputs.devices = TRY(node_volumes_.devices(pod(), spec, seams_.storage));
  inputs.files = TRY(managed_files(container, attempt));
  TRY(make_mount_points(inputs.volumes, inputs.files));
  inputs.enforcement = seams_.runtime.enforcement();
  inputs.machine_memory = machine_memory();
  inputs.seccomp_default = seams_.config.seccomp_default;
  inputs.host_name = view::Pod(pod()).spec().host_network() ? seams_.config.node_name : hostname_of(pod());
  inputs.shared_memory_dir = TRY(shared_memory());
  inputs.log_path = paths_.log(container.name, attempt);
  TRY(sys::make_directories(paths_.logs + "/" + record.name, 0755));
  if (is_privileged(spec)) inputs.host_devices = files::devices();
  if (std::string profile = seccomp_profile_name(pod(), spec); !profile.empty()) {
    Fd directory = TRY(sys::open_directory(seams_.config.seccomp_dir).wrap("open the seccomp profiles"));
    std::string text =
        TRY(sys::read_file_in(directory, profile, 1 << 20).wrap("read seccomp profile " + coracle::quoted(profile)));
    inputs.local_seccomp = TRY(parse_json(text).wrap("seccomp profile " + coracle::quoted(profile)));
  }
  inputs.apparmor_profile = TRY(apparmor_profile(spec));
  inputs.target_id = TRY(target_id(container));
  runtime::ContainerSpec made = TRY(make_container_spec(pod(), spec, inputs));
  std::string policy(view::Container(spec).termination_message_policy());
  made.metadata = ContainerMark{record.name,
                                std::string(view::Container(spec).image()),
                                image.digests.empty() ? image.id : image.digests.front(),
                                made.stop_signal,
                                definition_of(spec),
                                policy,
                                attempt}
                      .to_text();
  return made;
}

// The target container of an ephemeral container, if the containers have separate PID namespaces.
Result<std::string> ContainerStart::target_id(const ContainerRef& container) const {
  std::string target(view::EphemeralContainer(*container.spec).target_container_name());
  if (container.role != Role::ephemeral || target.empty()) return std::string();
  view::PodSpec spec = view::Pod(pod()).spec();
  if (spec.host_pid() || spec.share_process_namespace()) return std::string();
  const ContainerRecord* record = record_.find(target);
  if (record && record->running) return record->id();
  return Error(Code::not_found, "unable to find target container " + coracle::quoted(target) + ": it does not run");
}

// The AppArmor profile of the container; "" if none is requested. Errors: a missing profile.
Result<std::string> ContainerStart::apparmor_profile(const json::value& container) const {
  AppArmorProfile wanted = apparmor_profile_of(pod(), container);
  const AppArmorHooks& hooks = seams_.config.apparmor;
  if (wanted.type == "RuntimeDefault" && !is_privileged(container)) {
    if (!hooks.default_profile) return Error(Code::unsupported, "apparmor is not supported");
    return hooks.default_profile().wrap("load the default apparmor profile");
  }
  if (wanted.type != "Localhost") return std::string();
  if (!hooks.is_loaded) return Error(Code::unsupported, "apparmor is not supported");
  bool is_loaded = TRY(hooks.is_loaded(wanted.name).wrap("look for the apparmor profile"));
  if (!is_loaded) return Error(Code::invalid, "apparmor profile not found " + wanted.name);
  return wanted.name;
}

// The /dev/shm that the containers of the pod share, if it has more than one, because they share the IPC namespace.
Result<std::string> ContainerStart::shared_memory() {
  if (view::Pod(pod()).spec().host_ipc()) return std::string("/dev/shm");
  if (containers().all().size() < 2 || !seams_.config.mounts.tmpfs) return std::string();
  if (has_own_users(pod())) return std::string();  // the sandbox has one, owned by the pod's users
  std::string path = paths_.state + "/shm";
  TRY(sys::make_directories(path, 0755));
  TRY(seams_.config.mounts.tmpfs(path, kSharedMemory, 01777).wrap("mount the pod's shared memory"));
  return path;
}

Result<std::vector<ManagedFile>> ContainerStart::managed_files(const ContainerRef& container, int attempt) {
  const AgentConfig& config = seams_.config;
  bool on_host = view::Pod(pod()).spec().host_network();
  std::string hosts = paths_.state + "/etc-hosts", resolv = paths_.state + "/resolv.conf", hostname = paths_.state + "/hostname";
  std::string hosts_text =
      make_hosts_file(pod(), record_.ips, on_host ? read_host_file(config, "/etc/hosts") : "", seams_.network.cluster_domain);
  if (!sys::exists(hosts) || record_.containers_begun == 0) TRY(files::rewrite_file(hosts, hosts_text, 0644));
  TRY(files::rewrite_file(resolv, make_resolv_conf(pod(), host_resolv_conf(config), seams_.network).text(), 0644));
  TRY(files::rewrite_file(hostname, (on_host ? config.node_name : hostname_of(pod())) + "\n", 0644));
  std::string directory = paths_.container(container.name);
  TRY(sys::make_directories(directory, 0755));
  std::string message = directory + "/" + std::to_string(attempt) + "-message";
  TRY(files::rewrite_file(message, "", 0666));  // writable for any user of the container
  auto [hosts_at, resolv_at, hostname_at, message_at] = managed_places(*container.spec);
  return std::vector<ManagedFile>{{hosts_at, hosts}, {resolv_at, resolv}, {hostname_at, hostname}, {message_at, message}};
}

// ---- attempts ----

void ContainerStart::begin_attempt(ContainerRecord& record, int attempt) {
  SteadyTime now = seams_.clock.steady();
  if (record.terminated) {
    record.back_off.next(record.ended_at, now);
    record.last = std::move(record.terminated);
    record.terminated.reset();
  }
  seams_.probes.forget(uid_, record.id());
  record.attempt = attempt;
  record.waiting_reason.clear();
  record.waiting_message.clear();
  record.post_start = record.pre_stop = {};
  record.stopping.reset();
  record.started = record.ready = false;
  record.ailment = Ailment::none;
  record.ailment_text.clear();
  ++record_.containers_begun;
  entry_.start_failed.erase(record.name);
}

void ContainerStart::note_started(const ContainerRef& container, ContainerRecord& record) {
  record.running = record.in_sandbox = true;
  show_log(record);
  event(false, "Started", "Started container " + record.name, &container);
  view::LifecycleHandler hook = view::Container(*container.spec).lifecycle().post_start();
  if (hook.members().empty()) return;
  record.post_start = {HookState::running, ""};
  const auto sleep = bounded_seconds(std::max<int64_t>(hook.sleep().seconds(), 0));
  begin_hook(container, record, "postStart", std::max(kPostStartTimeout, sleep));
}

void ContainerStart::show_log(const ContainerRecord& record) const {
  const std::string& directory = seams_.config.log_links_dir;
  if (directory.empty()) return;
  std::string id = container_id(record_, record).substr(kContainerIdScheme.size());
  auto linked = link_log(directory, record_.key, record.name, id, paths_.log(record.name, record.attempt));
  if (!linked) log_debug("node", linked.error().text());  // the container runs anyway
}

// The attempt counts as ended with exit code 128: a container that cannot be executed is retried with back-off, like one that
// crashes.
void ContainerStart::note_start_failed(const ContainerRef& container, ContainerRecord& record, int attempt, const Error& error) {
  std::string now = format_time(seams_.clock.now());
  record.running = false;
  record.in_sandbox = true;
  record.terminated = json::object{{"exitCode", 128},
                                   {"reason", "StartError"},
                                   {"message", error.text()},
                                   {"startedAt", "1970-01-01T00:00:00Z"},
                                   {"finishedAt", now}};
  record.ended_at = seams_.clock.steady();
  entry_.start_failed[record.name] = attempt;
  event(true, "Failed", "Error: " + error.text(), &container);
  again_at(seams_.clock.steady());
}

// On a full disk: removes the writable layers of earlier attempts. Their logs and results are kept. Returns whether anything was
// removed.
bool ContainerStart::free_disk_space(const ContainerRecord& record) {
  bool any = false;
  for (int old = std::max(0, record.attempt - kLogsKept); old < record.attempt; old++)
    any |= bool(seams_.runtime.remove_container(uid_, record.name + "-" + std::to_string(old)));
  return any;
}

// Keeps the newest attempt and the one before, for logs and last states.
void ContainerStart::remove_old_attempts(const ContainerRecord& record) {
  int old = record.attempt - kLogsKept;
  if (old < 0) return;
  (void)seams_.runtime.remove_container(uid_, record.name + "-" + std::to_string(old));  // removed with the sandbox otherwise
  (void)sys::unlink(paths_.container(record.name) + "/" + std::to_string(old) + "-message");
  std::string stem = std::to_string(old) + ".log";
  for (const auto& name : files::list(paths_.logs + "/" + record.name))
    if (name.starts_with(stem)) (void)sys::unlink(paths_.logs + "/" + record.name + "/" + name);
  remove_dead_links(seams_.config.log_links_dir, paths_.logs);
}

}  // namespace coracle::node
