// SPDX-License-Identifier: Apache-2.0
// See network.h.
#include "daemon/network/network.h"

#include <algorithm>

#include "daemon/network/dns_server.h"
#include "daemon/network/dns_service.h"
#include "daemon/network/firewall.h"
#include "daemon/network/pod_guard.h"
#include "daemon/network/pod_network.h"
#include "daemon/network/service_proxy.h"
#include "daemon/network/zone_source.h"
#include "runtime/base/log.h"
#include "runtime/sys/inet.h"

namespace coracle::network {
namespace {

constexpr uint16_t kDnsPortElsewhere = 10053;  // used if another server has port 53 on all addresses
constexpr int kPodRangeBitsMax = 29, kPodRangeBitsMin = 12;

struct Ranges {
  Ipv4Range pods, services;
  Ipv4 dns;
};

bool overlap(const Ipv4Range& a, const Ipv4Range& b) { return a.contains(b.base) || b.contains(a.base); }

Result<Ranges> parse(const Config& config) {
  Ranges out;
  out.pods = TRY(Ipv4Range::parse(config.pod_cidr).wrap("podCIDR"));
  out.services = TRY(Ipv4Range::parse(config.service_cidr).wrap("serviceCIDR"));
  out.dns = TRY(Ipv4::parse(config.dns_address).wrap("clusterDNS"));
  if (out.pods.bits < kPodRangeBitsMin || out.pods.bits > kPodRangeBitsMax)
    return Error(Code::invalid, "podCIDR: its prefix must have between " + std::to_string(kPodRangeBitsMin) + " and " +
                                    std::to_string(kPodRangeBitsMax) + " bits");
  if (overlap(out.pods, out.services))
    return Error(Code::invalid, "podCIDR: " + config.pod_cidr + " and serviceCIDR, " + config.service_cidr + ", overlap");
  if (!out.services.contains(out.dns))
    return Error(Code::invalid, "clusterDNS: " + config.dns_address + " is not within serviceCIDR, " + config.service_cidr);
  return out;
}

}  // namespace

struct Network::State {
  std::string domain;
  Ipv4 dns;
  std::unique_ptr<PodNetwork> pods;
  InformerZone zone;
  std::unique_ptr<DnsServer> server;
  std::unique_ptr<ServiceProxy> proxy;
  std::function<void(const std::string& sandbox)> tell_lost_link;

  Result<void> restore_links(const sys::LossMonitor::News& news);
};

// Usually an interface disappears with its pod, and nothing must be restored.
Result<void> Network::State::restore_links(const sys::LossMonitor::News& news) {
  bool is_ours = std::any_of(news.links.begin(), news.links.end(),
                             [&](const std::string& link) { return link == kAnchorName || pods->is_lost(link); });
  if (!news.damaged && !is_ours) return {};
  log_notice("network", "links, addresses or routes of the pod network were changed; putting them back");
  std::vector<std::string> lost = TRY(pods->restore_links());
  for (const std::string& sandbox : lost)
    if (tell_lost_link) tell_lost_link(sandbox);
  return {};
}

Network::Network(std::unique_ptr<State> state) : state_(std::move(state)) {}
Network::~Network() { stop(); }

Result<void> Network::check(const Config& config) {
  TRY(parse(config));
  return {};
}

Result<std::unique_ptr<Network>> Network::open(const Config& config, Informer& services, Informer& endpoint_slices,
                                               Informer& pods, EventSink* events) {
  Ranges ranges = TRY(parse(config));
  std::unique_ptr<State> state(
      new State{config.domain, ranges.dns, nullptr, InformerZone(services, endpoint_slices, pods), nullptr, nullptr, {}});
  state->pods = TRY(PodNetwork::open({ranges.pods, ranges.services, ranges.dns, config.run_dir}));

  DnsServerConfig dns;
  dns.zone = {config.domain, ranges.pods, ranges.services, ranges.dns};
  dns.listen = ranges.dns;
  dns.ports = {kDnsPort, kDnsPortElsewhere};
  dns.resolv_conf = config.resolv_conf;
  dns.ours = {ranges.dns, state->pods->gateway()};
  state->server = TRY(DnsServer::open(std::move(dns), state->zone));
  uint16_t port = state->server->port();
  if (port != kDnsPort) log_notice("dns", "port 53 is taken; translating to another", {{"port", std::to_string(port)}});

  ServiceProxyConfig proxy{
      ranges.pods,    ranges.services, ranges.dns, port, [attached = state->pods.get()] { return attached->host_ports(); },
      config.api_port};
  proxy.pods_cgroup = config.pods_cgroup;
  proxy.restore_links = [state = state.get()](const sys::LossMonitor::News& lost) { return state->restore_links(lost); };
  proxy.restore_guard = [attached = state->pods.get()] { return attached->restore_guard(); };
  if (events != nullptr)
    proxy.ignored = [recorder = EventRecorder(*events, "service-proxy")](const Object& service, const char* reason,
                                                                         const std::string& message) {
      recorder.warning(service, reason, message);
    };
  state->proxy = TRY(ServiceProxy::open(std::move(proxy), services, endpoint_slices));
  return std::unique_ptr<Network>(new Network(std::move(state)));
}

void Network::start(Callbacks callbacks) {
  state_->tell_lost_link = std::move(callbacks.lost_link);
  state_->server->start();
  state_->proxy->start(std::move(callbacks.rules_applied));
}

void Network::stop() {
  state_->proxy->stop();
  state_->server->stop();
}

Result<std::vector<std::string>> Network::attach(const std::string& sandbox, const Fd& netns,
                                                 const std::vector<HostPort>& ports) {
  Ipv4 address = TRY(state_->pods->attach(sandbox, netns, ports));
  if (!ports.empty()) state_->proxy->wake();
  return std::vector<std::string>{address.text()};
}

std::vector<std::string> Network::contested(const std::vector<HostPort>& ports) {
  std::vector<std::string> out;
  if (ports.empty()) return out;
  auto listeners = sys::listeners();
  if (!listeners) return out;
  for (const HostPort& port : ports)
    for (const sys::Listener& one : *listeners) {
      bool same_protocol = (one.transport == sys::Transport::tcp ? Protocol::tcp : Protocol::udp) == port.protocol;
      const Ipv4 at{one.at.address};
      if (!same_protocol || one.at.port != port.host_port || (at && port.host_ip && at != port.host_ip)) continue;
      out.push_back("host port " + std::to_string(port.host_port) +
                    " is a pod's now: a program of this machine that listens on " + at.text() + ":" +
                    std::to_string(one.at.port) + " no longer gets what comes there");
      break;
    }
  return out;
}

void Network::expect_loss(const std::string& sandbox) { state_->pods->expect_loss(sandbox); }

Result<void> Network::detach(const std::string& sandbox) {
  TRY(state_->pods->detach(sandbox));
  state_->proxy->wake();
  return {};
}

std::vector<std::string> Network::addresses(const std::string& sandbox) const {
  Ipv4 address = state_->pods->address_of(sandbox);
  return address ? std::vector<std::string>{address.text()} : std::vector<std::string>{};
}

bool Network::serves(const std::string& address) const {
  Result<Ipv4> parsed = Ipv4::parse(address);
  return parsed && state_->proxy->serves(*parsed);
}

void Network::publish_dns(Client& client) {
  Result<void> made = ensure_dns_service(client, state_->dns);
  if (!made) log_warning("dns", "cannot create or update the Service of the DNS server", {{"why", made.error().text()}});
}

std::string Network::dns_address() const { return state_->dns.text(); }
std::string Network::domain() const { return state_->domain; }
std::string Network::gateway_address() const { return state_->pods->gateway().text(); }

Result<void> Network::wait_applied(std::chrono::milliseconds longest) { return state_->proxy->wait_applied(longest); }

Result<void> Network::cleanup(const Config& config) {
  TRY(Firewall::remove().wrap("remove the rules"));
  TRY(PodGuard::remove().wrap("remove the rules that guard the pods' addresses"));
  return PodNetwork::cleanup(config.run_dir).wrap("remove the links");
}

}  // namespace coracle::network
