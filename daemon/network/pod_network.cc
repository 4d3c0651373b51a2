// SPDX-License-Identifier: Apache-2.0
// See pod_network.h.
#include "daemon/network/pod_network.h"

#include <algorithm>
#include <map>
#include <set>

#include "daemon/network/pod_link.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/sys/file.h"
#include "runtime/sys/netlink.h"
#include "runtime/sys/netns.h"

namespace coracle::network {
namespace {

constexpr uint32_t kMtuDefault = 1500;
constexpr int kUnplugTries = 3;
constexpr std::chrono::milliseconds kRunningTimeout{2000};
// The only setting of the machine that is changed; the others belong to the daemon's own interfaces and disappear with them.
constexpr const char* kForwarding = "/proc/sys/net/ipv4/ip_forward";
constexpr const char* kForwardingWasOff = "/forwarding-was-off";  // file in run_dir: cleanup disables forwarding

bool is_sandbox_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 &&
         std::all_of(id.begin(), id.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

// Writes a kernel setting. A missing file (IPv6 disabled at boot) is not an error.
Result<void> set_sysctl(const std::string& path, std::string_view value) {
  Result<Fd> file = sys::open(path, O_WRONLY);
  if (!file) return file.error().code() == Code::not_found ? Result<void>() : Result<void>(file.take_error());
  return sys::write_all(*file, value).wrap("set " + path);
}

// Disables router advertisements, and IPv6 as a whole, because pods get no IPv6 addresses (CVE-2020-10749, CVE-2024-32473).
// "default" applies to interfaces created later; lo exists already and keeps ::1.
Result<void> quiet_ipv6(const std::string& interface) {
  const std::string base = "/proc/sys/net/ipv6/conf/" + interface;
  TRY(set_sysctl(base + "/accept_ra", "0"));
  return set_sysctl(base + "/disable_ipv6", "1");
}

bool answers_on_loopback(const HostPort& port) { return !port.host_ip || port.host_ip.value >> 24 == 127; }

bool exists_already(const Result<void>& result) { return !result && result.error().code() == Code::already_exists; }

Result<void> ensure_address(sys::Netlink& host, uint32_t link, const std::string& address) {
  Result<void> added = host.add_address(link, address);
  return exists_already(added) ? Result<void>() : std::move(added);
}

// The MTU of the default route's interface; without one, Ethernet's.
uint32_t find_mtu(sys::Netlink& host) {
  Result<std::vector<sys::RouteSpec>> routes = host.routes();
  Result<std::vector<sys::Link>> links = host.links();
  if (!routes || !links) return kMtuDefault;
  for (const sys::RouteSpec& route : *routes) {
    if (route.destination != "0.0.0.0/0") continue;
    for (const sys::Link& link : *links)
      if (link.index == route.link && link.mtu >= 576 && link.mtu < kMtuDefault) return link.mtu;
  }
  return kMtuDefault;
}

// Brings the bridge up with exactly the daemon's addresses, and creates the route to the Services' addresses: they must be
// routable from this machine, even without a default route, before a rule can translate them.
Result<void> ensure_anchor(sys::Netlink& host, const PodNetworkConfig& config, Ipv4 gateway) {
  Result<uint32_t> made = host.add_bridge(kAnchorName, machine_mac(gateway), kLinkAlias);
  if (!made && made.error().code() != Code::already_exists) return made.take_error();
  uint32_t anchor = TRY(host.index_of(kAnchorName));
  TRY(quiet_ipv6(kAnchorName));
  const std::string own = gateway.text() + "/" + std::to_string(config.pods.bits), dns = config.dns.text() + "/32";
  std::vector<sys::AddressInfo> addresses = TRY(host.addresses(anchor));
  for (const sys::AddressInfo& there : addresses) {
    if (there.address == own || there.address == dns || there.address == config.dns.text()) continue;
    TRY(host.remove_address(anchor, there.address));  // of an earlier configuration
  }
  TRY(ensure_address(host, anchor, own));
  TRY(ensure_address(host, anchor, dns));
  TRY(host.set_up(anchor));
  return host.add_route({.destination = config.services.text(), .link = anchor, .source = gateway.text(), .scope_link = true});
}

// Creates the route and the neighbour entry from this machine to a pod.
Result<void> lead_to_pod(sys::Netlink& host, uint32_t link, Ipv4 pod, Ipv4 gateway) {
  TRY(host.add_neighbor(link, pod.text(), pod_mac(pod)));
  return host.add_route({.destination = pod.text() + "/32", .link = link, .source = gateway.text(), .scope_link = true});
}

// Waits until the interface is running. The kernel detects the carrier shortly after the interface is up and drops packets until
// then. The response to a pod's first DNS query would be lost, and resolvers retry only after seconds.
Result<void> await_running(sys::Netlink& host, const std::string& name) {
  sys::Link link = TRY(host.link(name));
  if (link.running) return {};
  sys::NetlinkMonitor news = TRY(sys::NetlinkMonitor::open());
  const SteadyTime end = system_clock().steady() + kRunningTimeout;
  for (;;) {
    link = TRY(host.link(name));
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - system_clock().steady());
    if (link.running || left.count() <= 0) return {};  // a packet may be lost, which is no reason to fail the pod
    TRY(sys::wait_readable(news.fd(), left));
    news.drain();
  }
}

Result<void> ensure_forwarding(const std::string& run_dir) {
  std::string now = TRY(sys::read_file(kForwarding));
  if (now.starts_with('1')) return {};
  TRY(sys::replace_file(run_dir + kForwardingWasOff, "", 0600, sys::Durability::volatile_));
  return set_sysctl(kForwarding, "1");
}

}  // namespace

Result<std::unique_ptr<PodNetwork>> PodNetwork::open(const PodNetworkConfig& config) {
  TRY(sys::make_directories(config.run_dir, 0700));
  sys::Netlink host = TRY(sys::Netlink::open());
  Ipv4 gateway = AddressPool(config.pods).gateway();
  TRY(ensure_anchor(host, config, gateway).wrap(std::string("interface ") + kAnchorName));
  TRY(ensure_forwarding(config.run_dir).wrap("turn on forwarding"));
  std::unique_ptr<PodNetwork> network(new PodNetwork(config, find_mtu(host)));
  TRY(network->restore().wrap("find attached pods again"));
  Result<void> guarded = network->restore_guard();
  if (!guarded)  // a kernel without nftables: then Services do not work either
    log_error("network", "pods can send from each other's addresses: the rules against it were not applied",
              {{"why", guarded.error().text()}});
  return network;
}

// A record without its interface belongs to a sandbox that was removed while no daemon was running.
Result<void> PodNetwork::restore() {
  sys::Netlink host = TRY(sys::Netlink::open());
  std::vector<sys::Link> links = TRY(host.links());
  std::vector<Attachment> recorded = TRY(records_.load());
  auto plugged = [&](const Attachment& attachment) {
    return std::any_of(links.begin(), links.end(), [&](auto& link) { return link.name == link_name(attachment.address); });
  };
  for (Attachment& attachment : recorded) {
    Result<void> kept = state_.with([&](State& state) -> Result<void> {
      if (!plugged(attachment)) return Error(Code::not_found, "its interface is gone");
      TRY(state.pool.restore(attachment.sandbox, attachment.address));
      state.attachments[attachment.sandbox] = attachment;
      return {};
    });
    if (kept) continue;
    log_info("network", "address freed", {{"sandbox", attachment.sandbox}, {"why", kept.error().text()}});
    TRY(records_.remove(attachment.sandbox));
  }
  return {};
}

Result<Attachment> PodNetwork::reserve(const std::string& sandbox, std::vector<HostPort> host_ports) {
  Attachment attachment{sandbox, {}, std::move(host_ports)};
  attachment.address = TRY(state_.with([&](State& state) { return state.pool.take(sandbox); }));
  TRY(records_.store(attachment));
  state_.with([&](State& state) { state.attachments[sandbox] = attachment; });
  return attachment;
}

Result<Ipv4> PodNetwork::attach(const std::string& sandbox, const Fd& netns, std::vector<HostPort> host_ports) {
  if (!is_sandbox_id(sandbox)) return Error(Code::invalid, "sandbox id " + sandbox);
  Attachment attachment = TRY(reserve(sandbox, std::move(host_ports)));
  state_.with([&](State& state) { state.leaving.erase(sandbox); });
  // Before the veth exists, so that the first packet is both checked and accepted.
  Result<void> admitted = guard_.admit(attachment.address);
  if (!admitted && guarded_) admitted = restore_guard();  // another program has just removed the tables
  if (!guarded_) admitted = {};                           // open() has already warned
  Result<void> plugged = admitted ? create_veth(attachment, netns) : std::move(admitted);
  for (int tries = 0; exists_already(plugged) && tries < kUnplugTries; ++tries) {
    // The kernel has not yet removed the interface of the address's last owner. This is rare, because addresses are reused late.
    TRY(remove_veth(attachment.address));
    plugged = create_veth(attachment, netns);
  }
  if (plugged) return attachment.address;
  TRY(detach(sandbox));
  return std::move(plugged.take_error()).wrap("connect " + attachment.address.text());
}

Result<void> PodNetwork::remove_veth(Ipv4 address) {
  sys::Netlink host = TRY(sys::Netlink::open());
  Result<uint32_t> index = host.index_of(link_name(address));
  Result<void> removed = index ? host.remove_link(*index) : Result<void>(index.take_error());
  if (!removed && removed.error().code() != Code::not_found) return removed;
  return {};
}

// Configures the pod's namespace (defaults for its interfaces), then creates the veth pair, then configures the pod's end.
// Idempotent: existing parts are kept.
Result<void> PodNetwork::create_veth(const Attachment& attachment, const Fd& netns) {
  const std::string address = attachment.address.text(), gateway = this->gateway().text();
  const std::string name = link_name(attachment.address);
  const std::string own_mac = pod_mac(attachment.address), host_mac = machine_mac(attachment.address);

  std::optional<sys::Netlink> opened;
  TRY(sys::in_netns(netns, [&]() -> Result<void> {
    TRY(quiet_ipv6("default"));
    opened = TRY(sys::Netlink::open());
    return {};
  }));
  sys::Netlink& pod = *opened;
  sys::Netlink host = TRY(sys::Netlink::open());

  Result<uint32_t> eth0 = pod.index_of(kPodLinkName);
  if (eth0 && !host.index_of(name)) {  // of another address, from an earlier pod_cidr
    TRY(pod.remove_link(*eth0));
    eth0 = Error(Code::not_found, kPodLinkName);
  }
  if (!eth0) {
    TRY(host.add_veth({.name = name,
                       .peer_name = kPodLinkName,
                       .peer_netns = &netns,
                       .mtu = mtu_,
                       .mac = host_mac,
                       .peer_mac = own_mac,
                       .alias = kLinkAlias,
                       .up = false}));
    TRY(quiet_ipv6(name));
    eth0 = pod.index_of(kPodLinkName);
  }
  uint32_t inside = TRY(std::move(eth0));
  uint32_t outside = TRY(host.index_of(name));
  const auto& ports = attachment.host_ports;
  if (guarded_ && std::any_of(ports.begin(), ports.end(), answers_on_loopback))
    TRY(set_sysctl("/proc/sys/net/ipv4/conf/" + name + "/route_localnet", "1"));
  TRY(host.set_up(outside));
  TRY(lead_to_pod(host, outside, attachment.address, this->gateway()));

  Result<void> added = pod.add_address(inside, address + "/32");
  if (!added && !exists_already(added)) return added;
  TRY(pod.set_up(inside));
  TRY(pod.add_neighbor(inside, gateway, host_mac));
  TRY(pod.add_route({.destination = gateway + "/32", .link = inside, .scope_link = true}));
  TRY(pod.add_route({.destination = "0.0.0.0/0", .gateway = gateway, .link = inside}));
  return await_running(host, name);
}

void PodNetwork::expect_loss(const std::string& sandbox) {
  state_.with([&](State& state) { state.leaving.insert(sandbox); });
}

Result<void> PodNetwork::detach(const std::string& sandbox) {
  // Removes the record first: after a crash in between, the interface still shows that the address is in use.
  TRY(records_.remove(sandbox));
  state_.with([&](State& state) {
    state.attachments.erase(sandbox);
    state.leaving.erase(sandbox);
    state.pool.give_back(sandbox);
  });
  return {};
}

Ipv4 PodNetwork::address_of(const std::string& sandbox) const {
  return state_.with([&](const State& state) { return state.pool.of(sandbox); });
}

std::vector<PodPort> PodNetwork::host_ports() const {
  return state_.with([](const State& state) {
    std::vector<PodPort> out;
    for (const auto& [sandbox, attachment] : state.attachments)
      for (const HostPort& port : attachment.host_ports) out.push_back({port, attachment.address});
    return out;
  });
}

bool PodNetwork::is_lost(const std::string& link) const {
  return state_.with([&](const State& state) {
    return std::any_of(state.attachments.begin(), state.attachments.end(), [&](const auto& entry) {
      return link_name(entry.second.address) == link && !state.leaving.contains(entry.first);
    });
  });
}

std::vector<Ipv4> PodNetwork::attached() const {
  return state_.with([](const State& state) {
    std::vector<Ipv4> out;
    for (const auto& [sandbox, attachment] : state.attachments) out.push_back(attachment.address);
    return out;
  });
}

Result<std::vector<std::string>> PodNetwork::restore_links() {
  sys::Netlink host = TRY(sys::Netlink::open());
  TRY(ensure_anchor(host, config_, gateway()).wrap(std::string("interface ") + kAnchorName));
  std::map<std::string, sys::Link> links;
  std::vector<sys::Link> all = TRY(host.links());
  for (sys::Link& link : all) links.emplace(link.name, std::move(link));
  auto attachments = state_.with([](const State& state) {
    auto staying = state.attachments;
    for (const std::string& sandbox : state.leaving) staying.erase(sandbox);
    return staying;
  });
  std::vector<std::string> lost;
  for (const auto& [sandbox, attachment] : attachments) {
    auto link = links.find(link_name(attachment.address));
    if (link == links.end()) {
      lost.push_back(sandbox);
      continue;
    }
    auto lead = [&]() -> Result<void> {
      if (!link->second.up) TRY(host.set_up(link->second.index));
      return lead_to_pod(host, link->second.index, attachment.address, gateway());
    };
    Result<void> led = lead();  // its pod may be ending at the moment
    if (!led) log_info("network", "no route to a pod", {{"pod", attachment.address.text()}, {"why", led.error().text()}});
  }
  return lost;
}

Result<void> PodNetwork::restore_guard() {
  std::vector<Ipv4> before = attached();
  TRY(guard_.replace(before));
  guarded_ = true;
  std::set<Ipv4> there(before.begin(), before.end());
  for (Ipv4 pod : attached())  // pods whose entry was added to the tables that were replaced
    if (!there.contains(pod)) TRY(guard_.admit(pod));
  return {};
}

Ipv4 PodNetwork::gateway() const { return AddressPool(config_.pods).gateway(); }

Result<void> PodNetwork::cleanup(const std::string& run_dir) {
  sys::Netlink host = TRY(sys::Netlink::open());
  std::vector<sys::Link> links = TRY(host.links());
  for (const sys::Link& link : links) {
    if (link.alias != kLinkAlias || !link.name.starts_with(kLinkPrefix)) continue;
    Result<void> removed = host.remove_link(link.index);
    if (!removed && removed.error().code() != Code::not_found) return removed;
  }
  if (sys::exists(run_dir + kForwardingWasOff)) {
    std::string now = TRY(sys::read_file(kForwarding));
    if (now.starts_with('1')) TRY(set_sysctl(kForwarding, "0"));
  }
  return sys::remove_tree(run_dir);
}

}  // namespace coracle::network
