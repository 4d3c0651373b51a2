// SPDX-License-Identifier: Apache-2.0
// coracled: read the configuration, build the rooms, wire them, run, stop. A table of contents: the only file that names
// both sides of a seam. Members of House stand in the order in which they start; they stop in reverse.
//
//   engine ◀─ registry ◀─ client ─▶ informers ─▶ controllers, scheduler, network, agent ─▶ runtime
//                 ▲                                                                  │
//                api ─────────────── streams, images ────────────────────────────────┘
//
// Threads: README.md, "Threads".
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "daemon/api/server.h"
#include "daemon/config.h"
#include "daemon/controller/manager.h"
#include "daemon/event/recorder.h"
#include "daemon/informer/informers.h"
#include "daemon/machine.h"
#include "daemon/network/network.h"
#include "daemon/node/agent.h"
#include "daemon/registry/bootstrap.h"
#include "daemon/registry/local.h"
#include "daemon/registry/registry.h"
#include "daemon/scheduler/scheduler.h"
#include "runtime/base/text.h"
#include "runtime/runtime.h"
#include "runtime/sys/file.h"
#include "runtime/sys/netlink.h"
#include "runtime/sys/process.h"
#include "runtime/sys/socket.h"
#include "store/engine/engine.h"

namespace coracle {
namespace {

// ---- logging: journald with fields where it listens, else standard error ----

void to_journal(LogLevel level, std::string_view room, std::string_view text, LogFields fields) {
  std::string message = "MESSAGE=" + std::string(room) + ": " + std::string(text);
  std::vector<std::string> more;
  for (const auto& [name, value] : fields) {
    message.append(" ").append(name).append("=").append(value);
    std::string upper = "CORACLE_";
    for (char c : name) upper += c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    more.push_back(upper + "=" + std::string(value));
  }
  more.push_back(message);
  more.push_back("PRIORITY=" + std::to_string(int(level)));
  more.push_back("CORACLE_ROOM=" + std::string(room));
  more.push_back("SYSLOG_IDENTIFIER=coracled");
  std::vector<iovec> parts;
  for (auto& line : more) parts.push_back({line.data(), line.size()});
  (void)sd_journal_sendv(parts.data(), int(parts.size()));  // nowhere is left to say that it failed
}

// Whether standard error is the journal: systemd says which device and inode that is. See systemd.exec(5), $JOURNAL_STREAM.
bool is_journal() {
  const char* told = std::getenv("JOURNAL_STREAM");
  struct stat error{};
  if (!told || ::fstat(STDERR_FILENO, &error) != 0) return false;
  return std::to_string(error.st_dev) + ":" + std::to_string(error.st_ino) == told;
}

void choose_log(LogLevel level) { set_log_sink(is_journal() ? LogSink(to_journal) : LogSink(), level); }

// ---- facts ----

struct Facts {
  std::string node_name, node_address;
};

Result<Facts> look_at_machine(const Config& config) {
  Facts facts{config.node_name, config.node_address};
  if (facts.node_name.empty()) facts.node_name = TRY(host_name());
  if (facts.node_address.empty()) facts.node_address = TRY(host_address());
  return facts;
}

registry::Ranges ranges_of(const Config& config) {
  registry::Ranges ranges;
  ranges.service_cidr = config.service_cidr;
  ranges.node_port_min = config.node_port_first;
  ranges.node_port_max = config.node_port_last;
  return ranges;
}

engine::Options engine_options(bool set_aside_damaged = false) {
  engine::Options options;
  options.window_events_max = 2048;  // what a client that comes back within minutes goes on from, on a small machine
  options.window_bytes_max = 1 << 20;
  options.set_aside_damaged = set_aside_damaged;
  options.find_kind = registry::stored_kind;
  return options;
}

runtime::Config runtime_config(const Config& config) {
  runtime::Config to;
  to.state_dir = config.state_dir + "/runtime";
  to.run_dir = config.run_dir;
  to.pause_program = config.pause_program;
  to.image_program = config.image_program;
  to.cgroup_root = config.cgroup_root;
  to.cgroup_unit = "system.slice/coracle-pods.service";  // which systemd delegates to us
  to.insecure_registries = config.insecure_registries;
  to.mirrors = config.mirrors;
  return to;
}

network::Config network_config(const Config& config) {
  network::Config to;
  to.pod_cidr = config.pod_cidr;
  to.service_cidr = config.service_cidr;
  to.dns_address = config.cluster_dns;
  to.domain = config.cluster_domain;
  to.run_dir = config.run_dir + "/network";
  return to;
}

node::AgentConfig agent_config(const Config& config, const Facts& facts) {
  node::AgentConfig to;
  to.node_name = facts.node_name;
  to.node_ips = {facts.node_address};
  to.state_dir = config.state_dir + "/pods";
  to.memory_dir = config.run_dir + "/volumes";
  to.log_dir = config.log_dir;
  to.manifests_dir = config.manifests_dir;
  to.seccomp_dir = config.state_dir + "/seccomp";
  to.pods_max = config.max_pods;
  to.pod_pids_max = config.pod_pids_limit;
  to.mounts.tmpfs = [](const std::string& directory, Bytes size, unsigned mode) { return mount_tmpfs(directory, size, mode); };
  to.mounts.unmount = [](const std::string& directory) { return unmount(directory); };
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
    return node::Attachment{std::move(addresses)};
  };
  hooks.detach = [&network](const std::string& sandbox) { return network.detach(sandbox); };
  hooks.nameservers = {network.dns_address()};
  hooks.cluster_domain = network.domain();
  return hooks;
}

api::Config api_config(const Config& config, const Facts& facts, std::atomic<bool>& settled) {
  api::Config to;
  to.pki_dir = config.state_dir + "/pki";
  to.node_name = facts.node_name;
  to.cluster_domain = config.cluster_domain;
  to.kubeconfig_path = config.config_dir + "/admin.kubeconfig";
  std::vector<std::string> addresses = {"127.0.0.1"};
  std::vector<std::string> asked = config.listen.empty() ? std::vector<std::string>{facts.node_address} : config.listen;
  for (const auto& address : asked)
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) addresses.push_back(address);
  for (const auto& address : addresses) to.listen.push_back({address, config.port});
  for (const auto& name : config.tls_san) (name.find_first_not_of("0123456789.:abcdef") == name.npos ? to.addresses : to.dns_names).push_back(name);
  to.addresses.push_back(facts.node_address);
  if (auto service = registry::api_service_address(ranges_of(config))) to.addresses.push_back(*service);
  to.checks.push_back({"informers", [&settled] { return settled.load(); }, false});
  return to;
}

// ---- the house ----

class House {
 public:
  static Result<std::unique_ptr<House>> build(const Config& config) {
    Facts facts = TRY(look_at_machine(config));
    for (const auto& address : config.listen) {
      bool here = TRY(has_address(address));
      if (!here) log_notice("main", "this machine does not have the address yet", {{"listen", address}});
    }
    for (const auto& [dir, mode] : {std::pair(config.state_dir, 0700), std::pair(config.run_dir, 0700), std::pair(config.config_dir, 0755),
                                    std::pair(config.manifests_dir, 0755), std::pair(config.log_dir, 0755)})
      TRY(sys::make_directories(dir, mode_t(mode)));
    std::unique_ptr<House> house(new House(config, std::move(facts)));
    house->engine_ = TRY(engine::Engine::open(config.state_dir + "/state.db", engine_options()));
    TRY(house->furnish());
    return house;
  }

  // Ready when it returns.
  Result<void> start(std::stop_token stop) {
    TRY(server_->start());
    TRY(registry::bootstrap(*registry_, ranges_of(config_), {facts_.node_address, port()}));
    controllers_ = std::make_unique<controller::Manager>(*client_, *informers_, *events_, controller_config());
    scheduler_ = std::make_unique<scheduler::Scheduler>(*client_, *informers_, *events_);
    network_->publish_dns(*client_);
    network_->start();
    TRY(agent_->start());
    TRY(informers_->start());
    controllers_->start();
    scheduler_->start();
    if (!informers_->wait_synced(stop)) return Error(Code::cancelled, "stopped while starting");
    settled_ = true;
    return {};
  }

  std::string summary() const {
    return "node " + facts_.node_name + " at https://" + facts_.node_address + ":" + std::to_string(port());
  }
  // Comes back when the rooms that everything passes through give their locks back: what the watchdog waits for.
  void answer() const {
    (void)engine_->revision();
    (void)server_->counts();
  }

  const std::string& node_address() const { return facts_.node_address; }
  std::string missing_limits() const { return runtime_->enforcement().missing; }

  ~House() {  // pods go on
    settled_ = false;
    scheduler_.reset();
    controllers_.reset();
    if (agent_) agent_->stop();  // before the server: who follows a silent log is woken by the agent
    if (server_) server_->stop();
    if (network_) network_->stop();
  }

 private:
  House(const Config& config, Facts facts) : config_(config), facts_(std::move(facts)) {}

  Result<void> furnish() {
    registry_ = std::make_unique<registry::Registry>(*engine_, ranges_of(config_));
    client_ = std::make_unique<registry::LocalClient>(*registry_);
    events_ = std::make_unique<EventWriter>(*client_);
    runtime_ = TRY(runtime::open(runtime_config(config_)));
    informers_ = std::make_unique<Informers>(*client_);
    network_ = TRY(network::Network::open(network_config(config_), informers_->of(kService), informers_->of(kEndpointSlice), informers_->of(kPod)));
    if (facts_.node_address.starts_with("127.")) facts_.node_address = network_->gateway_address();  // where pods find us, network or not
    node::AgentSeams seams{.client = *client_, .pods = informers_->of(kPod), .config_maps = informers_->of(kConfigMap),
                           .secrets = informers_->of(kSecret), .services = informers_->of(kService), .runtime = *runtime_, .events = *events_};
    agent_ = std::make_unique<node::Agent>(agent_config(config_, facts_), seams, network_hooks(*network_));
    server_ = std::make_unique<api::Server>(api_config(config_, facts_, settled_), *registry_, *agent_, *agent_);
    return {};
  }

  controller::Config controller_config() const {
    controller::Config to;
    to.root_ca = server_->ca_certificate();
    to.local_node = facts_.node_name;
    return to;
  }

  uint16_t port() const { return server_->bound().empty() ? config_.port : server_->bound().front().port; }

  const Config config_;
  Facts facts_;
  std::atomic<bool> settled_ = false;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<registry::Registry> registry_;
  std::unique_ptr<registry::LocalClient> client_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<runtime::Runtime> runtime_;
  std::unique_ptr<Informers> informers_;
  std::unique_ptr<network::Network> network_;
  std::unique_ptr<node::Agent> agent_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<controller::Manager> controllers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
};

// ---- the process ----

void prepare_process() {
  (void)mallopt(M_ARENA_MAX, 2);                // a daemon of few threads that must stay small
  (void)mallopt(M_TRIM_THRESHOLD, 128 * 1024);  // what is freed goes back
  (void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &files);  // as many as we may have; fewer only limit how many clients fit
  }
  ::umask(022);
  std::signal(SIGPIPE, SIG_IGN);
}

enum class Why { asked_to_end, moved };  // why a house is closed

// The address that the machine has now, if it is another than the house's. None counts for nothing: a cable that is pulled
// comes back, and what is on this machine reaches us by loopback.
std::optional<std::string> moved_to(const House& house) {
  auto now = host_address();
  if (!now || *now == house.node_address() || now->starts_with("127.")) return std::nullopt;
  return *now;
}

// Blocks until the process is asked to end, or the machine has stood under another address for kSettle. Tells systemd's
// watchdog that the house answers.
Result<Why> wait_for_end(const Fd& signals, const House& house, bool follow_address) {
  constexpr std::chrono::milliseconds kSettle{2000};
  uint64_t watchdog_us = 0;
  bool watched = sd_watchdog_enabled(0, &watchdog_us) > 0;
  int watch_ms = watched ? int(watchdog_us / 2000) : -1;
  auto monitor = TRY(sys::NetlinkMonitor::open());
  std::optional<SteadyTime> look_at;  // addresses changed: when to look
  if (follow_address) look_at = system_clock().steady();  // they may have while the house was opened
  for (;;) {
    int wait_ms = watch_ms;
    if (look_at) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(*look_at - system_clock().steady());
      wait_ms = std::max(0, watched ? std::min(watch_ms, int(left.count())) : int(left.count()));
    }
    pollfd on[] = {{signals.get(), POLLIN, 0}, {follow_address ? monitor.fd().get() : -1, POLLIN, 0}};
    if (::poll(on, 2, wait_ms) < 0 && errno != EINTR) return Error::from_errno("wait");
    signalfd_siginfo got{};
    if (on[0].revents && ::read(signals.get(), &got, sizeof got) == sizeof got && (got.ssi_signo == SIGTERM || got.ssi_signo == SIGINT))
      return Why::asked_to_end;
    if (on[1].revents) {
      monitor.drain();
      if (!look_at) look_at = system_clock().steady() + kSettle;
    }
    if (look_at && system_clock().steady() >= *look_at) {
      look_at.reset();
      if (auto address = moved_to(house)) {
        log_notice("main", "this machine has another address; starting anew, pods go on",
                   {{"was", house.node_address()}, {"is", *address}});
        return Why::moved;
      }
    }
    if (watched) {
      house.answer();
      sd_notify(0, "WATCHDOG=1");
    }
  }
}

// One house, from its opening to its end.
Result<Why> run_once(const Config& config, const Fd& signals) {
  SteadyTime started = system_clock().steady();
  sd_notify(0, "STATUS=starting");
  auto house = TRY(House::build(config));
  if (std::string missing = house->missing_limits(); !missing.empty()) log_warning("main", missing);
  TRY(house->start({}));
  ::malloc_trim(0);
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(system_clock().steady() - started);
  log_info("main", "ready: " + house->summary(), {{"ms", std::to_string(took.count())}});
  sd_notify(0, ("READY=1\nSTATUS=" + house->summary()).c_str());

  Why why = TRY(wait_for_end(signals, *house, config.node_address.empty()));
  if (why == Why::moved) return why;
  log_info("main", "stopping; pods go on");
  sd_notify(0, "STOPPING=1\nSTATUS=stopping; pods go on");
  return why;
}

Result<void> run(const Config& config) {
  std::vector<int> wanted = {SIGTERM, SIGINT, SIGHUP};
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (int signal : wanted) ::sigaddset(&blocked, signal);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);  // before any thread is made: all inherit it
  Fd signals = TRY(sys::make_signalfd(wanted));
  for (;;) {
    Why why = TRY(run_once(config, signals));
    if (why == Why::asked_to_end) return {};
  }
}

// Ends every pod of this machine and takes our network away. The daemon must not be running.
Result<void> remove_pods(const Config& config) {
  {
    auto store = engine::Engine::open(config.state_dir + "/state.db", engine_options());  // nobody else may have it open
    if (!store && store.error().code() == Code::unavailable) return store.take_error().wrap("is coracled still running?");
    auto runtime = TRY(runtime::open(runtime_config(config)));
    std::vector<runtime::SandboxState> all = TRY(runtime->sandboxes());
    for (const auto& sandbox : all) TRY(runtime->remove_sandbox(sandbox.id).wrap("remove sandbox " + sandbox.id));
  }
  (void)unmount(config.run_dir + "/volumes");  // nothing may be mounted there
  return network::Network::cleanup(network_config(config));
}

// Begins with an empty store where the present one is damaged; the damaged one is kept.
Result<void> set_aside_damaged(const Config& config) {
  std::string path = config.state_dir + "/state.db";
  TRY(engine::Engine::open(path, engine_options(true)));  // says what it did, if it did anything
  log_info("main", "the store is whole", {{"path", path}});
  return {};
}

}  // namespace
}  // namespace coracle

int main(int argc, char** argv) {
  CLI::App app("coracled: a whole Kubernetes for one machine", "coracled");
  std::string path = "/etc/coracle/config.yaml";
  bool check = false, remove = false, aside = false;
  auto* given = app.add_option("--config", path, "the configuration file (default " + path + ", where there is one)");
  app.add_flag("--check-config", check, "read the configuration, say what is wrong with it, and end");
  app.add_flag("--remove-pods", remove, "end all pods of this machine and remove its pod network; coracled must not be running");
  app.add_flag("--set-aside-damaged", aside,
               "check the store; if it is damaged, keep it under another name and begin an empty one; then end");
  app.set_version_flag("--version", "coracled " CORACLE_VERSION);
  CLI11_PARSE(app, argc, argv);

  coracle::prepare_process();
  if (given->count() > 0 && ::access(path.c_str(), F_OK) != 0) {
    std::fprintf(stderr, "coracled: %s: %s\n", path.c_str(), std::strerror(errno));
    return 2;
  }
  auto config = coracle::read_config(path);
  if (!config) {
    std::fprintf(stderr, "coracled: %s\n", config.error().text().c_str());
    return 2;
  }
  if (check) return 0;
  coracle::choose_log(config->log_level);
  auto done = remove ? coracle::remove_pods(*config) : aside ? coracle::set_aside_damaged(*config) : coracle::run(*config);
  if (done) return 0;
  coracle::log_error("main", done.error().text());
  return 1;
}
