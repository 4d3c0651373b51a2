// SPDX-License-Identifier: Apache-2.0
// See daemon.h. First the configuration of each component, then their connection.
#include "daemon/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "daemon/auth/audit_policy.h"
#include "daemon/auth/default_roles.h"
#include "daemon/auth/signer.h"
#include "daemon/auth/static_tokens.h"
#include "daemon/machine.h"
#include "daemon/nfs.h"
#include "daemon/node/end_by_marks.h"
#include "daemon/queue_metrics.h"
#include "daemon/quota/disruption.h"
#include "daemon/registry/bootstrap.h"
#include "daemon/registry_source.h"
#include "daemon/stop_limit.h"
#include "daemon/volume_metrics.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/apparmor.h"
#include "runtime/sys/file.h"
#include "runtime/sys/memory.h"
#include "runtime/sys/probe.h"
#include "runtime/sys/process.h"
#include "store/kinds/pod/pod_state.h"
#include "store/kinds/service/server/address_range.h"

namespace coracle {
namespace {

constexpr size_t kWindowBytesMax = 1 << 20, kWindowBytesAtRest = 32 << 10;  // memory for recent events

Result<NodeIdentity> look_at_machine(const Config& config) {
  NodeIdentity identity{config.node_name, config.node_address};
  if (identity.node_name.empty()) identity.node_name = TRY(host_name());
  if (identity.node_address.empty()) identity.node_address = TRY(host_address());
  return identity;
}

kinds::Ranges ranges_of(const Config& config) {
  kinds::Ranges ranges;
  ranges.service_cidr = config.service_cidr;
  ranges.node_port_min = config.node_port_first;
  ranges.node_port_max = config.node_port_last;
  return ranges;
}

// The default limit of all objects' size. All objects are in memory.
size_t store_bytes_max(const Config& config) {
  constexpr uint64_t kAddressable = sizeof(void*) == 4 ? uint64_t(1) << 30 : SIZE_MAX;  // a program has three gigabytes there
  if (config.store_max_size != 0) return size_t(std::min(uint64_t(config.store_max_size) << 20, kAddressable));
  auto memory = uint64_t(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) * uint64_t(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  return size_t(std::clamp<uint64_t>(memory / 8, 64 << 20, std::min(uint64_t(2) << 30, kAddressable)));
}

EventRecord store_full_event(const engine::Usage& usage, const std::string& node) {
  EventRecord record{.warning = true, .reason = "StoreFull", .message = {}, .component = "store", .host = node, .about = {}};
  record.message = "objects take " + std::to_string(usage.bytes >> 20) + " of the " + std::to_string(usage.bytes_max >> 20) +
                   " MiB that they may: what is new is refused. Delete what is not needed, or raise storeMaxSize in the settings";
  record.about.api_version = "v1", record.about.kind = "Node", record.about.name = record.about.uid = node;
  return record;
}

engine::Options engine_options(const schema::CatalogSource& catalogs, bool set_aside_damaged = false) {
  engine::Options options;
  options.window_events_max = 2048;  // recent events from which a reconnecting client can resume, on a small machine
  options.window_bytes_max = kWindowBytesMax;
  options.set_aside_damaged = set_aside_damaged;
  options.find_kind = std::bind_front(&schema::CatalogSource::stored_kind, &catalogs);
  return options;
}

admission::Settings admission_settings(const Config& config) {
  std::string app_armor = sys::read_file("/sys/module/apparmor/parameters/enabled").value_or("");
  return {.deny_service_external_ips = config.deny_service_external_ips, .has_app_armor = app_armor.starts_with('Y')};
}

runtime::Config runtime_config(const Config& config) {
  runtime::Config to;
  to.state_dir = config.state_dir + "/runtime";
  to.run_dir = config.run_dir;
  to.pause_program = config.pause_program;
  to.image_program = config.image_program;
  to.cgroup_root = config.cgroup_root;
  to.cgroup_unit = "system.slice/coracle-pods.service";  // systemd delegates it to the daemon
  to.registries = RegistrySource(config);
  return to;
}

network::Config network_config(const Config& config) {
  network::Config to;
  to.pod_cidr = config.pod_cidr;
  to.service_cidr = config.service_cidr;
  to.dns_address = config.cluster_dns;
  to.domain = config.cluster_domain;
  to.run_dir = config.run_dir + "/network";
  to.api_port = config.port;
  return to;
}

Result<scheduler::Configuration> read_scheduler_configuration(const Config& config) {
  std::string text = TRY(sys::read_file(config.scheduler_config_file).wrap("schedulerConfigFile"));
  return scheduler::read_configuration(text).wrap("schedulerConfigFile: " + config.scheduler_config_file);
}

node::VerificationPolicy verification_policy(std::string_view name) {  // validated with the configuration
  if (name == "NeverVerify") return node::VerificationPolicy::never;
  if (name == "NeverVerifyAllowlistedImages") return node::VerificationPolicy::never_allowlisted;
  if (name == "AlwaysVerify") return node::VerificationPolicy::always;
  return node::VerificationPolicy::never_preloaded;
}

node::AgentConfig agent_config(const Config& config, const NodeIdentity& identity) {
  node::AgentConfig to;
  to.node_name = identity.node_name;
  to.node_ips = {identity.node_address};
  to.state_dir = config.state_dir + "/pods";
  to.memory_dir = config.run_dir + "/volumes";
  to.log_dir = config.log_dir;
  to.log_links_dir = config.log_links_dir.empty() && config.log_dir == kLogDir ? kLogLinksDir : config.log_links_dir;
  to.manifests_dir = config.manifests_dir;
  to.images_dir = config.images_dir;
  to.images_record = config.state_dir + "/imported-archives.json";
  to.seccomp_dir = config.state_dir + "/seccomp";
  to.volume_dirs = config.volume_dirs;
  if (to.volume_dirs.empty()) to.volume_dirs.push_back(config.state_dir + "/volumes");
  to.pods_max = config.max_pods;
  to.pod_pids_max = config.pod_pids_limit;
  to.has_own_users = sys::try_own_users(config.state_dir).ok();
  to.image_collection = {config.image_gc_high_percent, config.image_gc_low_percent,
                         std::chrono::seconds(config.image_gc_least_age)};
  to.run_present_images_offline = config.run_present_images_offline;
  to.image_verification = {verification_policy(config.image_verification), config.image_verification_allowlist};
  to.mounts.tmpfs = [](const std::string& directory, Bytes size, unsigned mode) { return mount_tmpfs(directory, size, mode); };
  to.mounts.huge_pages = mount_huge_pages;
  to.mounts.unmount = unmount;
  to.mounts.unmount_below = unmount_below;
  to.mounts.nfs = mount_nfs;
  to.mounts.server_answers = server_answers;
  to.apparmor.enabled = sys::is_apparmor_enabled;
  to.apparmor.is_loaded = sys::is_apparmor_profile_loaded;
  to.apparmor.default_profile = load_default_apparmor;
  return to;
}

node::PodNetworkHooks network_hooks(network::Network& network) {
  node::PodNetworkHooks hooks;
  hooks.attach = [&network](const std::string& sandbox, const Fd& netns, const Key&,
                            const std::vector<node::HostPort>& ports) -> Result<node::Attachment> {
    std::vector<network::HostPort> wanted;
    for (const auto& port : ports) {
      network::HostPort to{.host_port = port.host_port, .pod_port = port.container_port};
      to.protocol = TRY(network::parse_protocol(port.protocol));
      if (!port.host_ip.empty()) to.host_ip = TRY(network::Ipv4::parse(port.host_ip).wrap("hostIP"));
      wanted.push_back(to);
    }
    std::vector<std::string> addresses = TRY(network.attach(sandbox, netns, wanted));
    return node::Attachment{std::move(addresses), network::Network::contested(wanted)};
  };
  hooks.expect_loss = [&network](const std::string& sandbox) { network.expect_loss(sandbox); };
  hooks.detach = [&network](const std::string& sandbox) { return network.detach(sandbox); };
  hooks.serves = [&network](const std::string& address) { return network.serves(address); };
  hooks.nameservers = {network.dns_address()};
  hooks.cluster_domain = network.domain();
  return hooks;
}

api::Config api_config(const Config& config, const NodeIdentity& identity, std::atomic<bool>& settled) {
  api::Config to;
  to.pki_dir = config.state_dir + "/pki";
  to.node_name = identity.node_name;
  to.cluster_domain = config.cluster_domain;
  to.kubeconfig_path = config.config_dir + "/admin.kubeconfig";
  to.local_socket_dir = config.run_dir;
  std::vector<std::string> addresses = {"127.0.0.1"};
  std::vector<std::string> asked = config.listen.empty() ? std::vector<std::string>{identity.node_address} : config.listen;
  for (const auto& address : asked)
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) addresses.push_back(address);
  for (const auto& address : addresses) to.listen.push_back({address, config.port});
  for (const auto& name : config.tls_san)
    (name.find_first_not_of("0123456789.:abcdef") == name.npos ? to.addresses : to.dns_names).push_back(name);
  to.addresses.push_back(identity.node_address);
  if (auto service = registry::api_service_address(ranges_of(config))) to.addresses.push_back(*service);
  if (!config.audit_policy_file.empty())
    to.audit = {config.audit_policy_file, config.audit_log_path, size_t(config.audit_log_max_size) << 20,
                config.audit_log_max_backup};
  to.checks.push_back({"informers", [&settled] { return settled.load(); }, false});
  return to;
}

}  // namespace

Result<void> Daemon::check(const Config& config) {
  auto settings = [&]() -> Result<void> {
    TRY(network::Network::check(network_config(config)));
    TRY(kinds::AddressRange::parse(config.service_cidr).wrap("serviceCIDR"));
    if (!config.scheduler_config_file.empty()) TRY(read_scheduler_configuration(config));
    if (!config.token_auth_file.empty()) TRY(auth::read_static_tokens(config.token_auth_file).wrap("tokenAuthFile"));
    if (!config.audit_policy_file.empty()) {
      std::string text = TRY(sys::read_file(config.audit_policy_file).wrap("auditPolicyFile"));
      TRY(auth::AuditPolicy::parse(text).wrap("auditPolicyFile: " + config.audit_policy_file));
    }
    return {};
  };
  auto good = settings();
  if (!good) return at_setting(config, good.take_error());
  return {};
}

Result<std::unique_ptr<Daemon>> Daemon::build(const Config& config) {
  NodeIdentity identity = TRY(look_at_machine(config));
  for (const auto& address : config.listen) {
    bool here = TRY(has_address(address));
    if (!here) log_notice("main", "this machine does not have the address yet", {{"listen", address}});
  }
  for (const auto& [dir, mode] :
       {std::pair(config.state_dir, 0700), std::pair(config.run_dir, 0700), std::pair(config.config_dir, 0755),
        std::pair(config.manifests_dir, 0755), std::pair(config.log_dir, 0755)})
    TRY(sys::make_directories(dir, mode_t(mode)));
  std::unique_ptr<Daemon> daemon(new Daemon(config, std::move(identity)));
  TRY(backup::adopt(config.state_dir).wrap("put the restored store in its place"));
  daemon->restored_ = TRY(sys::make_eventfd());
  daemon->stirred_ = TRY(sys::make_eventfd());
  engine::Options options = engine_options(daemon->catalogs_);
  if (!config.events_on_disk) options.memory_only = [](const Kind& kind) { return kind == kEvent; };
  options.objects_bytes_max = store_bytes_max(config);
  options.copies = config.run_dir;
  options.on_full = [daemon = daemon.get()](const engine::Usage& usage) {
    if (daemon->events_) daemon->events_->post(store_full_event(usage, daemon->identity_.node_name));
  };
  daemon->engine_ = TRY(engine::Engine::open(config.state_dir + "/state.db", std::move(options)));
  if (config.node_name.empty()) TRY(daemon->keep_node_name());
  TRY(daemon->construct_parts());
  return daemon;
}

Result<void> Daemon::keep_node_name() {
  std::string machine_id(trim(sys::read_file("/etc/machine-id").value_or("")));
  std::vector<json::value> nodes;
  engine::ListPage page = TRY(engine_->list(kNode, {}));
  for (const ObjectPtr& node : page.items) nodes.push_back(node->json());
  std::string kept = node_name_of(nodes, machine_id, identity_.node_name);
  if (kept != identity_.node_name)
    log_notice("main", "the host has another name; the node keeps its own", {{"host", identity_.node_name}, {"node", kept}});
  identity_.node_name = kept;
  return {};
}

Result<void> Daemon::construct_parts() {
  if (!config_.scheduler_config_file.empty()) scheduler_configuration_ = TRY(read_scheduler_configuration(config_));
  maintenance_ = std::make_unique<backup::StoreMaintenance>(
      backup::StoreMaintenanceConfig{config_.state_dir, CORACLE_VERSION, identity_.node_name, catalogs_,
                                     [this] { sys::signal_eventfd(restored_); }},
      *engine_);
  registry_ =
      std::make_unique<registry::Registry>(*engine_, catalogs_, ranges_of(config_), system_clock(), admission_settings(config_));
  client_ = std::make_unique<registry::LocalClient>(*registry_);
  events_ = std::make_unique<EventWriter>(*client_);
  runtime_ = TRY(runtime::open(runtime_config(config_)));
  informers_ = std::make_unique<Informers>(*client_);
  network::Config for_network = network_config(config_);
  for_network.pods_cgroup = runtime_->pods_cgroup();
  network_ = TRY(network::Network::open(for_network, informers_->of(kService), informers_->of(kEndpointSlice),
                                        informers_->of(kPod), events_.get()));
  if (identity_.node_address.starts_with("127."))
    identity_.node_address = network_->gateway_address();  // the address for pods, with or without a network
  gate_ = std::make_unique<startup::StartupGate>(*informers_, [this](const Object& pod) {
    return view::Pod(pod).spec().node_name() == identity_.node_name ? agent_->ready(pod.uid()) : is_ready(view::Pod(pod));
  });
  node::AgentSeams seams{.client = *client_,
                         .pods = informers_->of(kPod),
                         .config_maps = informers_->of(kConfigMap),
                         .secrets = informers_->of(kSecret),
                         .services = informers_->of(kService),
                         .runtime = *runtime_,
                         .events = *events_};
  seams.nodes = &informers_->of(kNode);
  seams.claims = &informers_->of(kPersistentVolumeClaim);
  seams.volumes = &informers_->of(kPersistentVolume);
  seams.storage_classes = &informers_->of(kStorageClass);
  seams.is_dropped = sys::is_dropped;
  seams.held_back = [this](const Object& pod) { return startup::waits_for(pod, *gate_); };
  agent_ = std::make_unique<node::Agent>(agent_config(config_, identity_), seams, network_hooks(*network_));
  gate_->on_change([&agent = *agent_](const std::string& ns) { agent.look_at_held(ns); });
  registry_->set_measure(
      kNodeMetrics, [this](const std::string&, const std::string& name, const auto&) { return agent_->metrics().nodes(name); });
  registry_->set_measure(kPodMetrics, [this](const std::string& ns, const std::string& name, const registry::Filter& wanted) {
    return agent_->metrics().pods(ns, name, wanted);
  });
  api::Config api = api_config(config_, identity_, settled_);
  api.maintenance = maintenance_.get();
  api.metrics = [this](std::string& text) {
    auto queue = controllers_queue_.with([](const auto& now) { return now; });
    if (queue) write_queue_metrics(text, queue->counts());
    write_volume_metrics(text, agent_->volumes());
  };
  api.when_asked = [this] {
    asked_.fetch_add(1, std::memory_order_relaxed);
    if (listening_.load(std::memory_order_relaxed) && listening_.exchange(false)) sys::signal_eventfd(stirred_);
  };
  api.placement = [this](const Object& pod) {
    return explaining_.with([&](const auto* scheduler) -> Result<json::value> {
      if (!scheduler) return Error(Code::unavailable, "the daemon is starting or stopping");
      return scheduler->explain(pod);
    });
  };
  if (!config_.token_auth_file.empty()) api.tokens.static_tokens = TRY(auth::read_static_tokens(config_.token_auth_file));
  server_ = std::make_unique<api::Server>(std::move(api), *registry_, *agent_, *agent_, *agent_);
  return {};
}

Result<void> Daemon::start(std::stop_token stop) {
  TRY(server_->start());
  TRY(registry::bootstrap(*registry_, ranges_of(config_), {identity_.node_address, port(), config_.storage_classes}));
  TRY(auth::ensure_default_roles(*registry_).wrap("make the default roles"));
  if (!ends_) make_deciders();
  network_->publish_dns(*client_);
  network_->start({.rules_applied = [&agent = *agent_] { agent.look_at_draining(); },
                   .lost_link = [&agent = *agent_](const std::string& sandbox) { agent.look_at_network(sandbox); }});
  TRY(agent_->start());
  TRY(informers_->start());
  if (controllers_) controllers_->start();
  if (scheduler_) scheduler_->start();
  explaining_.with([&](auto& now) { now = scheduler_.get(); });
  if (!informers_->wait_synced(stop)) return Error(Code::cancelled, "stopped while starting");
  settled_ = true;
  return {};
}

void Daemon::make_deciders() {
  controllers_ = std::make_unique<controller::Manager>(*client_, *informers_, *events_, catalogs_, controller_config());
  controllers_queue_.with([&](auto& now) { now = controllers_->queue(); });
  scheduler_ = std::make_unique<scheduler::Scheduler>(*client_, *informers_, *events_, scheduler_configuration_);
}

// Stops the controllers and the scheduler.
void Daemon::stop_deciders() {
  explaining_.with([](auto& now) { now = nullptr; });
  scheduler_.reset();
  controllers_queue_.with([](auto& now) { now.reset(); });
  controllers_.reset();
}

void Daemon::end_pods() {
  ends_ = true;
  stop_deciders();
  using std::chrono::seconds;
  seconds all(config_.shutdown_grace_period), critical(config_.shutdown_grace_period_critical_pods);
  agent_->end_pods({all - critical, critical});
}

void Daemon::wait_for_end_of_pods(const std::function<void()>& tick) {
  SteadyTime began = system_clock().steady();
  std::vector<std::string> left = agent_->wait_for_end(tick);
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(system_clock().steady() - began);
  if (left.empty()) log_notice("main", "all pods have ended", {{"ms", std::to_string(took.count())}});
  else log_warning("main", "pods have not ended in time", {{"pods", join(left, " ")}, {"ms", std::to_string(took.count())}});
}

Daemon::~Daemon() { (void)stop(); }  // the members' destructors wait for what hangs

bool Daemon::stop() {
  if (stopped_) return *stopped_;
  settled_ = false;
  stop_deciders();
  if (informers_) informers_->stop();  // their handlers use the components below
  if (agent_) agent_->stop();          // before the server: it wakes the readers of silent logs
  if (server_) server_->stop();
  if (network_) network_->stop();
  stopped_ = !agent_ || agent_->end_tasks();
  return *stopped_;
}

void Daemon::save() {
  (void)engine_->seal(Error(Code::unavailable, "the daemon is stopping"));
  if (auto saved = engine_->flush(); !saved)
    log_warning("main", "the last writes of status, leases and events are not on the disk", {{"why", saved.error().text()}});
}

void Daemon::answer() const {
  (void)engine_->revision();
  (void)server_->counts();
}

void Daemon::listen_for_work() const {
  sys::drain_eventfd(stirred_);
  listening_ = true;
}

void Daemon::rest() const {
  forget_parsed();
  server_->tokens().forget_remembered();
  engine_->shrink(kWindowBytesAtRest);
  sys::give_memory_back();
}

std::string Daemon::summary() const {
  return "node " + identity_.node_name + " at https://" + identity_.node_address + ":" + std::to_string(port());
}

controller::Config Daemon::controller_config() const {
  controller::Config to;
  to.root_ca = server_->ca_certificate();
  to.local_node = identity_.node_name;
  to.node_grace = std::chrono::seconds(config_.node_monitor_grace);
  to.judge_request = [this](const json::value& request) { return auth::approval_of(request, server_->authorizer()); };
  to.sign_request = [this](const json::value& request) -> Result<controller::SignedRequest> {
    if (!auth::is_built_in(view::CertificateSigningRequest(request).spec().signer_name())) return controller::SignedRequest{};
    auth::Outcome outcome = TRY(auth::signed_request(request, server_->authority(), system_clock().now()));
    return controller::SignedRequest{std::move(outcome.certificate), std::move(outcome.failure)};
  };
  to.lasting_token = [this](const Object& account, std::string_view secret) {
    return server_->tokens().issue_lasting(account, secret);
  };
  return to;
}

// ---- functions without a Daemon ----

namespace {

// Adds a hint to an error that means another process holds the store or the runtime.
Error ask_for_daemon(Error error) {
  bool is_held = error.code() == Code::unavailable || error.code() == Code::conflict;
  return is_held ? std::move(error).wrap("is coracled still running?") : std::move(error);
}

// Whether any pod runs. Errors: conflict while a daemon runs.
Result<bool> has_pods(const Config& config) {
  auto runtime = runtime::open(runtime_config(config));
  if (!runtime) return ask_for_daemon(runtime.take_error());
  std::vector<runtime::SandboxState> all = TRY((*runtime)->sandboxes());
  return std::any_of(all.begin(), all.end(), [](const auto& sandbox) { return sandbox.alive; });
}

Result<void> end_pods_of_daemon(const Config& config, bool machine_ends) {
  auto daemon = TRY(Daemon::build(config));
  daemon->end_pods();
  auto started = daemon->start({});
  if (started) daemon->wait_for_end_of_pods({});
  // What follows needs what the daemon holds: without that, systemd kills what is left of the pods.
  stop_or_exit(*daemon, started && machine_ends ? EXIT_SUCCESS : EXIT_FAILURE);
  return started;
}

}  // namespace

void stop_or_exit(Daemon& daemon, int status) {
  constexpr std::chrono::seconds kStopWithin{20};  // of systemd's TimeoutStopSec=
  auto leave = [&daemon, status] {
    log_error("main", "something waits for a disk or a server that does not answer: ending without it");
    daemon.save();
    std::_Exit(status);
  };
  auto stop = [&] {  // a thread that serves a request or synchronizes a pod may hang, too
    StopLimit limit(kStopWithin, leave);
    return daemon.stop();
  };
  if (!stop()) leave();
}

Result<void> end_pods(const Config& config, bool machine_ends) {
  bool any = TRY(has_pods(config));
  if (any) {
    if (auto ended = end_pods_of_daemon(config, machine_ends); !ended) {
      log_warning("main", "pods end without their rules: stop signal and grace period are all that is known of them",
                  {{"why", ended.error().text()}});
      auto runtime = TRY(runtime::open(runtime_config(config)));
      TRY(node::end_by_marks(*runtime, std::chrono::seconds(config.shutdown_grace_period)));
    }
  }
  return machine_ends ? Result<void>() : remove_pods(config);
}

Result<void> remove_pods(const Config& config) {
  {
    const schema::CatalogSource catalogs;
    // Fails if another process has it open.
    auto store = engine::Engine::open(config.state_dir + "/state.db", engine_options(catalogs));
    if (!store && store.error().code() == Code::unavailable) return ask_for_daemon(store.take_error());
    auto runtime = TRY(runtime::open(runtime_config(config)));
    std::vector<runtime::SandboxState> all = TRY(runtime->sandboxes());
    for (const auto& sandbox : all) TRY(runtime->remove_sandbox(sandbox.id).wrap("remove sandbox " + sandbox.id));
  }
  TRY(unmount_below(config.state_dir + "/pods"));  // volumes in memory, NFS shares
  TRY(unmount(config.run_dir + "/volumes"));
  return network::Network::cleanup(network_config(config));
}

Result<void> set_aside_damaged(const Config& config) {
  std::string path = config.state_dir + "/state.db";
  const schema::CatalogSource catalogs;
  TRY(engine::Engine::open(path, engine_options(catalogs, true)));  // logs what it did, if anything
  log_info("main", "the store's file is intact", {{"path", path}});
  return {};
}

}  // namespace coracle
