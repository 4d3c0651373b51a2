// SPDX-License-Identifier: Apache-2.0
// Proxy rules, planned: Services + EndpointSlices + host ports → the table `ip coracle`. Pure: value in, value out; what
// applies it is firewall.h. Why a packet's cost does not grow with the number of Services: its protocol, address and port
// are looked up in one hash map, which names the chain of the one port it belongs to.
//
//   prerouting (from pods, from outside) ─┐              ┌▶ service/<ns>/<name>/<port> ▶ dnat to a random ready endpoint
//   output (from the machine itself) ─────┴▶ translate ──┤     (ClientIP affinity: ▶ endpoint/… remembered by source)
//                                                        └▶ dnat to a pod's host port
//   forward, input, output (filter) ▶ what still bears a Service's address behind that has no endpoint, and is refused
//   postrouting ▶ masquerade: hairpin, endpoints elsewhere, pods speaking to the world
//
// Both traffic policies "Local" hold by themselves: every endpoint is on this machine, and no source address is hidden.
// Node and host ports answer on this machine's addresses only (`fib daddr type local`, CVE-2025-67499). On 127.0.0.1 host ports
// answer, too, to this machine alone: only what it sends itself is translated there, with the gateway's address as its source.
// The wire to such a pod has route_localnet, which opens loopback to what comes from there (CVE-2020-8558): pod_guard.h drops
// that.
//
// Who has an address and a port: first the clusters' addresses; then external ones (externalIPs, a load balancer's), the older
// Service before the younger. External addresses never are the Services' or the pods' own, nor an address of this machine at a
// port where it listens itself; the API's port on this machine is the API's, whoever asks for it. What is refused for that is in
// ProxyPlan::ignored. The listeners are those at the time of planning.
// Source: Kubernetes API, core/v1 ServiceSpec, discovery/v1 EndpointSlice; nft(8).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/network/address.h"
#include "daemon/network/ruleset.h"
#include "store/object/object_ptr.h"

namespace coracle::network {

// Of one Service; what goes beyond gets no traffic, and the first of it is in ProxyPlan::ignored. kube-proxy has no limits: a
// Service that anybody may create makes as many rules there as its ports times its addresses.
inline constexpr size_t kPortsMax = 1000;
inline constexpr size_t kEndpointsPerPortMax = 1000;
inline constexpr size_t kEndpointsMax = 16384;         // of all ports together
inline constexpr size_t kExternalAddressesMax = 4096;  // the same, for external addresses
inline constexpr size_t kSourceRangesMax = 65536;      // the same, for loadBalancerSourceRanges; sources beyond are not let in
inline constexpr int64_t kAffinityClientsMax = 65536;  // sources remembered per endpoint
inline constexpr const char* kLinkPrefix = "coracle";  // of all our links' names
inline constexpr const char* kAnchorName = "coracle0";
inline constexpr uint16_t kDnsPort = 53;
inline constexpr size_t kIgnoredMax = 256;  // further addresses are ignored without a word

enum class Protocol : uint8_t { tcp, udp, sctp };
const char* protocol_name(Protocol protocol);  // "tcp", as nft says it
// "TCP", "UDP", "SCTP" as Kubernetes says it; "" is TCP. Errors: invalid.
Result<Protocol> parse_protocol(std::string_view text);

struct HostPort {  // a container's port on the machine's address
  Protocol protocol = Protocol::tcp;
  Ipv4 host_ip;  // none: every address
  uint16_t host_port = 0;
  uint16_t pod_port = 0;
  auto operator<=>(const HostPort&) const = default;
};

struct PodPort {
  HostPort port;
  Ipv4 pod;
  auto operator<=>(const PodPort&) const = default;
};

struct LocalPort {  // where something on this machine waits for whoever comes
  Protocol protocol = Protocol::tcp;
  Ipv4 address;  // none: every address
  uint16_t port = 0;
  auto operator<=>(const LocalPort&) const = default;
};

struct ProxyInput {
  Ipv4Range pods, services;
  Ipv4 dns;                      // answered on this machine, unless a Service with that address has endpoints
  uint16_t dns_port = kDnsPort;  // where our server listens on it
  std::vector<ObjectPtr> service_objects;
  std::vector<ObjectPtr> slices;
  std::vector<PodPort> host_ports;
  uint16_t api_port = 0;  // of the API on this machine's addresses
  // This machine's addresses, and who listens there. Needed only when has_external_addresses().
  std::set<Ipv4> local;
  std::set<LocalPort> listeners;
};

// Whether any Service has, or may have, an address that is not the cluster's. Does not parse.
bool has_external_addresses(const std::vector<ObjectPtr>& services);

// An address or a port that was asked for and is not given.
struct Ignored {
  ObjectPtr service;    // null: a pod's host port
  std::string message;  // "external address 192.0.2.7 is ignored: …"
};

// Where UDP packets may be led; see udp_flows.h for why it is remembered.
struct UdpAddress {
  Ipv4 address;
  uint16_t port = 0;
  auto operator<=>(const UdpAddress&) const = default;
};

// The endpoints of one port, which may stand behind thousands of addresses: held once. Compared by value.
class UdpEndpoints {
 public:
  explicit UdpEndpoints(std::vector<UdpAddress> sorted)
      : all_(std::make_shared<const std::vector<UdpAddress>>(std::move(sorted))) {}
  const std::vector<UdpAddress>& operator*() const { return *all_; }
  bool operator==(const UdpEndpoints& other) const { return all_ == other.all_ || *all_ == *other.all_; }

 private:
  std::shared_ptr<const std::vector<UdpAddress>> all_;
};
// By where clients send to; no address: an address of this machine's (node port, host port).
using UdpPaths = std::map<UdpAddress, std::vector<UdpEndpoints>>;

struct ProxyPlan {
  Ruleset rules;
  UdpPaths udp;
  std::vector<Ignored> ignored;  // at most kIgnoredMax
};

// What cannot be put into a rule (an address that is none, a name that is no DNS name) is left out.
ProxyPlan plan_proxy(const ProxyInput& input);

}  // namespace coracle::network
