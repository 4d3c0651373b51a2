// SPDX-License-Identifier: Apache-2.0
// See service_proxy.h.
#include "daemon/network/service_proxy.h"

#include <sys/epoll.h>

#include <sstream>

#include "daemon/network/endpoints.h"
#include "daemon/network/firewall.h"
#include "daemon/network/machine_listeners.h"
#include "daemon/network/pod_guard.h"
#include "daemon/network/udp_flows.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"
#include "runtime/sys/netfilter.h"
#include "runtime/sys/netlink.h"
#include "store/object/object.h"

namespace coracle::network {
namespace {

constexpr const char* kByServed = "served";  // an index of slices
constexpr uint64_t kWoken = 1, kTables = 2, kLinks = 3;
constexpr int kGuardTries = 3;  // immediate attempts; another program may keep removing it

Result<std::set<Ipv4>> local_addresses() {
  sys::Netlink host = TRY(sys::Netlink::open());
  std::vector<sys::AddressInfo> addresses = TRY(host.addresses());
  std::set<Ipv4> local;
  for (const sys::AddressInfo& one : addresses) {
    std::string_view text = one.address;
    if (Result<Ipv4> address = Ipv4::parse(text.substr(0, text.find('/')))) local.insert(*address);
  }
  return local;
}

// Reads the machine's addresses and listeners, which external addresses and node ports must not use.
Result<void> look_at_machine(ProxyInput& input, MachineListeners& listeners) {
  input.local = TRY(local_addresses());
  input.listeners = TRY(listeners.read());
  std::string range = TRY(sys::read_file("/proc/sys/net/ipv4/ip_local_port_range"));
  std::istringstream words(range);
  words >> input.client_ports.first >> input.client_ports.last;
  return {};
}

// The machine's own listeners at one of these ports; Services yield to no others.
std::set<LocalPort> concerned(const std::set<LocalPort>& listeners, const std::set<std::pair<Protocol, uint16_t>>& ports) {
  std::set<LocalPort> out;
  for (const LocalPort& one : listeners)
    if (one.is_own && ports.contains({one.protocol, one.port})) out.insert(one);
  return out;
}

using Served = std::map<Ipv4, size_t>;  // addresses that are served, with the number of slices

Served served_by_slices(const std::vector<ServiceState>& states) {
  Served out;
  for (const ServiceState& state : states)
    for (const ObjectPtr& slice : state.slices)
      for (Ipv4 address : served_addresses({slice})) ++out[address];
  return out;
}

Result<void> forget_flows(const UdpPaths& before, const UdpPaths& now, const Ipv4Range& services) {
  std::set<Ipv4> local = TRY(local_addresses());
  UdpFlows flows(before, now, std::move(local), services);
  Result<size_t> forgotten = sys::forget_udp_flows([&](const sys::UdpFlow& flow) { return flows.stale(flow); });
  return forgotten ? Result<void>() : Result<void>(forgotten.take_error());
}

}  // namespace

struct ServiceProxy::State {
  ServiceProxyConfig config;
  Informer& services;
  Informer& slices;
  Fd wake, epoll;
  sys::TableMonitor tables;
  sys::LossMonitor links;

  struct Changes {                   // since the last pass
    bool whole = true;               // all rules must be planned
    std::set<std::string> services;  // "ns/name"
  };
  struct Progress {
    uint64_t wanted = 1;  // number of wakes; the first pass is requested from the start
    uint64_t applied = 0;
    Changes changes;
    void want_whole() { ++wanted, changes.whole = true; }
  };
  Guarded<Progress> progress{Progress{}};
  Guarded<Served> served{Served{}};  // by the rules, and by those being applied
  std::function<void()> tell_applied;

  // ---- used by the thread only ----
  Firewall firewall;
  bool guard_is_gone = false;
  sys::LossMonitor::News lost_links;
  UdpPaths udp;
  bool looked_at_flows = false;
  // What the applied rules were made of, beside the machine.
  struct AppliedState {
    RestingPtr service;
    std::vector<RestingPtr> slices;
  };
  std::map<std::string, AppliedState> states;  // by "ns/name"
  std::vector<PodPort> host_ports;
  Hairpins hairpins;
  bool contested = true;
  std::set<std::string> told;  // ignored addresses that were reported
  // Ports of external addresses and node ports, and the machine's listeners there when the rules were planned.
  std::set<std::pair<Protocol, uint16_t>> outside;
  std::set<LocalPort> listeners_there;
  MachineListeners listeners{config.pods_cgroup};
  std::jthread thread;

  void run(std::stop_token stop);
  void sleep(std::chrono::milliseconds longest);
  void hear_of_tables(uint64_t own = 0);
  void hear_of_links();
  void table_is_gone();
  bool is_damaged() const;
  bool restore();
  Result<void> restore_guard();
  void look_for_listeners();
  void tell(const std::vector<Ignored>& ignored);
  Result<void> bring_level();
  bool bring_services_level(const std::set<std::string>& changed);
  ServiceState state_then(const std::string& name) const;
  ServiceState state_now(const std::string& name) const;
  void remember(const ProxyInput& input, ProxyPlan& plan);
};

ServiceProxy::ServiceProxy(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServiceProxy::~ServiceProxy() { stop(); }

Result<std::unique_ptr<ServiceProxy>> ServiceProxy::open(ServiceProxyConfig config, Informer& services, Informer& slices) {
  Fd wake = TRY(sys::make_eventfd());
  Fd epoll = TRY(sys::make_epoll());
  sys::TableMonitor tables = TRY(sys::TableMonitor::open());
  TRY(sys::epoll_add(epoll, wake, EPOLLIN, kWoken));
  TRY(sys::epoll_add(epoll, tables.fd(), EPOLLIN, kTables));
  sys::LossMonitor links = TRY(sys::LossMonitor::open(kLinkPrefix));
  TRY(sys::epoll_add(epoll, links.fd(), EPOLLIN, kLinks));
  std::unique_ptr<State> state(
      new State{std::move(config), services, slices, std::move(wake), std::move(epoll), std::move(tables), std::move(links)});
  std::unique_ptr<ServiceProxy> proxy(new ServiceProxy(std::move(state)));
  slices.add_index(kByServed, served_by);
  slices.add_index(kServiceIndex, [](const Object& slice) { return std::vector<std::string>{service_of(slice)}; });
  auto concerns_rules = [](const Informer::Change& change) {
    return !change.before || !change.after || !have_same_rules(*change.before, *change.after);
  };
  services.on_change([=, self = proxy.get()](const Informer::Change& change) {
    if (concerns_rules(change)) self->wake_for({change.any().key().text()});
  });
  slices.on_change([=, self = proxy.get()](const Informer::Change& change) {
    if (!concerns_rules(change)) return;
    std::set<std::string> names;
    for (const ObjectPtr& slice : {change.before, change.after})
      if (slice) names.insert(service_of(*slice));
    self->wake_for(std::move(names));
  });
  return proxy;
}

void ServiceProxy::start(std::function<void()> applied) {
  state_->tell_applied = std::move(applied);
  state_->thread = start_thread("network", [this](std::stop_token stop) { state_->run(stop); });
}

void ServiceProxy::stop() {
  if (!state_->thread.joinable()) return;
  state_->thread.request_stop();
  sys::signal_eventfd(state_->wake);
  state_->thread.join();
}

bool ServiceProxy::serves(Ipv4 address) const {
  bool by_rules = state_->served.with([&](const Served& served) { return served.contains(address); });
  return by_rules || state_->slices.count_by_index(kByServed, address.text()) > 0;
}

void ServiceProxy::wake() {
  state_->progress.with([](State::Progress& progress) { progress.want_whole(); });
  sys::signal_eventfd(state_->wake);
}

void ServiceProxy::wake_for(std::set<std::string> services) {
  state_->progress.with([&](State::Progress& progress) {
    ++progress.wanted;
    progress.changes.services.merge(services);
  });
  sys::signal_eventfd(state_->wake);
}

Result<void> ServiceProxy::wait_applied(std::chrono::milliseconds longest) {
  uint64_t wanted = state_->progress.with([](State::Progress& progress) { return progress.wanted; });
  return state_->progress.wait_until(
      {}, std::chrono::steady_clock::now() + longest, [&](const State::Progress& progress) { return progress.applied >= wanted; },
      [&](State::Progress& progress) -> Result<void> {
        if (progress.applied >= wanted) return {};
        return Error(Code::timeout, "service rules are not applied yet");
      });
}

// Sleeps until a wake, a flushed table, or the timeout.
void ServiceProxy::State::sleep(std::chrono::milliseconds longest) {
  std::optional<std::chrono::milliseconds> timeout;
  if (longest != longest.max()) timeout = longest;
  Result<std::vector<sys::Ready>> ready = sys::epoll_wait(epoll, timeout);
  if (!ready) return;
  for (const sys::Ready& one : *ready) {
    if (one.key == kWoken) sys::drain_eventfd(wake);
    if (one.key == kTables) hear_of_tables();
    if (one.key == kLinks) hear_of_links();
  }
}

// `own`: the number of transactions by this process. If notifications were lost, most likely they were for these.
void ServiceProxy::State::hear_of_tables(uint64_t own) {
  std::vector<sys::TableMonitor::News> news = tables.read_all({kTableName, kPodTableName});
  const sys::TableMonitor::News &services_table = news[0], &pods_table = news[1];
  const bool lost = services_table.lost && own == 0;
  if (lost || (services_table.losses > 0 && services_table.changes > own)) table_is_gone();
  if (lost || pods_table.losses > 0) guard_is_gone = config.restore_guard != nullptr;
}

void ServiceProxy::State::hear_of_links() {
  sys::LossMonitor::News news = links.read();
  lost_links.damaged |= news.damaged;
  lost_links.links.merge(news.links);
}

bool ServiceProxy::State::is_damaged() const {
  return guard_is_gone || (config.restore_links && (lost_links.damaged || !lost_links.links.empty()));
}

// Restores what other programs removed from the pod network. False: it failed and must be retried.
bool ServiceProxy::State::restore() {
  if (guard_is_gone) {
    Result<void> restored = restore_guard();
    if (!restored)
      log_error("network", "cannot restore the rules that guard the pods' addresses", {{"why", restored.error().text()}});
    if (!restored) return false;
  }
  if (!is_damaged()) return true;
  Result<void> restored = config.restore_links(lost_links);
  if (!restored) log_error("network", "the pods' links are damaged", {{"why", restored.error().text()}});
  if (restored) lost_links = {};
  return restored.ok();
}

Result<void> ServiceProxy::State::restore_guard() {
  log_notice("network", "the rules that guard the pods' addresses were changed; restoring them");
  for (int tries = 0; tries < kGuardTries; ++tries) {
    TRY(config.restore_guard());
    guard_is_gone = false;
    std::vector<sys::TableMonitor::News> news = tables.read_all({kTableName, kPodTableName});
    if (news[0].losses > 0) table_is_gone();
    if (news[1].losses <= 1) return {};  // PodGuard::replace removes the tables once itself
    guard_is_gone = true;
  }
  return Error(Code::unavailable, "somebody keeps changing them");
}

void ServiceProxy::State::table_is_gone() {
  log_notice("network", "the nftables table of Services was changed; restoring it");
  firewall.forget();
  progress.with([](Progress& now) { now.want_whole(); });
}

void ServiceProxy::State::run(std::stop_token stop) {
  // The rules of an earlier daemon stay in force until the caches have synced: incomplete rules would cut connections.
  if (!services.wait_synced(stop) || !slices.wait_synced(stop)) return;
  SteadyTime due{}, restore_due{}, look_due{};  // earliest times
  while (!stop.stop_requested()) {
    const SteadyTime now = system_clock().steady();
    auto until = [&](SteadyTime then) { return std::max(std::chrono::ceil<std::chrono::milliseconds>(then - now), {}); };
    if (is_damaged() && now >= restore_due)
      restore_due = now + (restore() ? kRestoreIntervalMin : std::chrono::milliseconds(kProxyRetry));
    auto longest = is_damaged() ? until(restore_due) : std::chrono::milliseconds::max();
    if (!outside.empty()) {
      if (now >= look_due) look_for_listeners(), look_due = now + kLookInterval;
      longest = std::min(longest, until(look_due));
    }
    auto [wanted, applied] = progress.with([](const Progress& now) { return std::pair(now.wanted, now.applied); });
    if (wanted == applied || now < due) {
      sleep(wanted == applied ? longest : std::min(longest, until(due)));
      continue;
    }
    Result<void> level = bring_level();
    due = now + (level ? kProxyIntervalMin : std::chrono::milliseconds(kProxyRetry));
    if (!level) {
      log_error("network", "service rules not applied", {{"why", level.error().text()}});
      progress.with([](Progress& progress) { progress.changes.whole = true; });
      continue;
    }
    progress.with([&](Progress& progress) { progress.applied = wanted; });
    progress.notify();
    if (tell_applied) tell_applied();
  }
}

// A program of this machine that began to listen, such as sshd after a restart, gets its port back from Services.
void ServiceProxy::State::look_for_listeners() {
  Result<std::set<LocalPort>> now = listeners.read();
  if (now && concerned(*now, outside) != listeners_there) progress.with([](Progress& now) { now.want_whole(); });
}

void ServiceProxy::State::tell(const std::vector<Ignored>& ignored) {
  std::set<std::string> now;
  for (const Ignored& one : ignored) {
    std::string what = (one.service ? one.service->uid() : std::string()) + " " + one.message;
    if (now.insert(what).second && !told.contains(what)) {
      if (!one.service) log_warning("network", one.message);
      else if (config.ignored) config.ignored(*one.service, one.reason, one.message);
    }
  }
  told = std::move(now);
}

ServiceState ServiceProxy::State::state_then(const std::string& name) const {
  auto found = states.find(name);
  if (found == states.end()) return {};
  ServiceState out{found->second.service ? found->second.service->awake() : nullptr, {}};
  for (const RestingPtr& slice : found->second.slices) out.slices.push_back(slice->awake());
  return out;
}

ServiceState ServiceProxy::State::state_now(const std::string& name) const {
  size_t slash = name.find('/');
  Key key = slash == name.npos ? Key{} : Key{name.substr(0, slash), name.substr(slash + 1)};
  return {services.get(key), slices.by_index(kServiceIndex, name)};
}

void ServiceProxy::State::remember(const ProxyInput& input, ProxyPlan& plan) {
  states.clear();
  for (const ObjectPtr& service : input.service_objects) states[service->key().text()].service = service->at_rest();
  for (const ObjectPtr& slice : input.slices) states[service_of(*slice)].slices.push_back(slice->at_rest());
  host_ports = input.host_ports;
  hairpins = std::move(plan.hairpins);
  contested = plan.contested;
}

// False: all rules must be planned.
bool ServiceProxy::State::bring_services_level(const std::set<std::string>& changed) {
  hear_of_tables();
  const Ruleset* rules = firewall.applied();
  if (!rules || contested || changed.size() > kFewServices || config.host_ports() != host_ports) return false;
  std::vector<ServiceState> was, is;
  for (const std::string& name : changed) was.push_back(state_then(name)), is.push_back(state_now(name));
  ProxyInput machine{.pods = config.pods,
                     .services = config.services,
                     .dns = config.dns,
                     .dns_port = config.dns_port,
                     .api_port = config.api_port};
  std::optional<ProxyChange> change = plan_change(machine, was, is, *rules, hairpins);
  if (!change) return false;
  const Served served_then = served_by_slices(was), served_now = served_by_slices(is);
  served.with([&](Served& now) {
    for (const auto& [address, slices] : served_now) now[address] += slices;
  });
  const uint64_t before = firewall.transactions();
  Result<void> applied = firewall.apply_part(change->before, change->after);
  if (!applied) {
    log_debug("network", "the service rules are not as they were left", {{"why", applied.error().text()}});
    return false;
  }
  served.with([&](Served& now) {
    for (const auto& [address, slices] : served_then)
      if ((now[address] -= slices) == 0) now.erase(address);
  });
  hear_of_tables(firewall.transactions() - before);
  for (const auto& [element, uses] : change->hairpins)
    if (uses > 0) hairpins[element] = uses;
    else hairpins.erase(element);
  auto state = is.begin();
  for (const std::string& name : changed) {
    AppliedState now{state->service ? state->service->at_rest() : nullptr, {}};
    for (const ObjectPtr& slice : state->slices) now.slices.push_back(slice->at_rest());
    if (now.service || !now.slices.empty()) states[name] = std::move(now);
    else states.erase(name);
    ++state;
  }
  return true;
}

Result<void> ServiceProxy::State::bring_level() {
  Changes changes = progress.with([](Progress& now) { return std::exchange(now.changes, {false, {}}); });
  if (!changes.whole && bring_services_level(changes.services)) return {};
  ProxyInput input{config.pods,
                   config.services,
                   config.dns,
                   config.dns_port,
                   services.list(),
                   slices.list(),
                   config.host_ports(),
                   config.api_port,
                   {},
                   {},
                   {}};
  if (has_external_addresses(input.service_objects)) {
    Result<void> looked = look_at_machine(input, listeners);
    if (!looked) log_warning("network", "cannot list the listening ports of this machine", {{"why", looked.error().text()}});
  }
  ProxyPlan plan = plan_proxy(input);
  outside = std::move(plan.outside);
  listeners_there = concerned(input.listeners, outside);
  tell(plan.ignored);
  hear_of_tables();
  Served to_serve = served_by_slices({{nullptr, input.slices}});
  served.with([&](Served& now) { now.insert(to_serve.begin(), to_serve.end()); });
  const uint64_t before = firewall.transactions();
  bool replaced = TRY(firewall.apply(plan.rules));
  served.with([&](Served& now) { now = std::move(to_serve); });
  remember(input, plan);
  hear_of_tables(firewall.transactions() - before);
  // Flows that began while there was no table are not translated.
  const bool first = !std::exchange(looked_at_flows, true);  // the first time, flows of an earlier daemon may exist
  if (!first && udp == plan.udp && (!replaced || udp.empty())) return {};
  const bool is_concerned = !udp.empty() || !plan.udp.empty();
  Result<void> forgotten = forget_flows(udp, plan.udp, config.services);
  udp = std::move(plan.udp);
  if (!forgotten && is_concerned)
    log_warning("network", "stale UDP conntrack entries may remain", {{"why", forgotten.error().text()}});
  return {};
}

}  // namespace coracle::network
