// SPDX-License-Identifier: Apache-2.0
// The plan of the proxy rules: Services + EndpointSlices + host ports → the table `ip coracle`. Pure; firewall.h applies it. The
// cost of a packet does not depend on the number of Services: protocol, address and port are looked up in one hash map, which
// gives the chain of the Service port.
//
//   prerouting (from pods, from outside) ─┐              ┌▶ service/<ns>/<name>/<port> ▶ dnat to a random ready endpoint
//   output (from the machine itself) ─────┴▶ translate ──┤     (ClientIP affinity: ▶ endpoint/… stored per source)
//                                                        └▶ dnat to a pod's host port
//   forward, input, output (filter) ▶ rejects packets that still have a Service's address, because it has no endpoint
//   postrouting ▶ masquerade: hairpin, endpoints elsewhere, pods to the outside
//
// The traffic policies "Local" need no rules: every endpoint is on this machine, and source addresses are preserved. Node ports
// and host ports are open on this machine's addresses only (`fib daddr type local`, CVE-2025-67499). On 127.0.0.1, host ports are
// open to this machine only: just its own packets are translated there, with the gateway's address as their source. The veth of
// such a pod has route_localnet, which would allow packets from the pod to loopback (CVE-2020-8558); pod_guard.h drops them.
//
// Priority for an address and port: first cluster IPs; then external addresses (externalIPs, load balancers), the older Service
// before the younger one. An external address must not be in the Services' or pods' ranges. At this machine's addresses, external
// ones and node ports yield to the machine's own listeners only. kube-proxy never yields; but what root itself set up, such as
// sshd, must not become unreachable by a Service. Nor must what root let listen at a port that is not open to everybody, such as
// named with a user of its own at port 53. But at open ports no user's program takes a Service's traffic, and at none a pod with
// hostNetwork. The API's port on this machine is reserved. Rejected addresses and ports are in ProxyPlan::ignored. The listeners
// are read at the time of planning. Source: Kubernetes API, core/v1 ServiceSpec, discovery/v1 EndpointSlice; nft(8).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/network/address.h"
#include "daemon/network/ruleset.h"
#include "store/object/object_ptr.h"

namespace coracle::network {

// Limits per Service. Excess entries get no traffic, and the first one is in ProxyPlan::ignored. kube-proxy has no limits: there,
// anybody who may create a Service can make as many rules as the product of its ports and addresses.
inline constexpr size_t kPortsMax = 1000;
inline constexpr size_t kEndpointsPerPortMax = 1000;
inline constexpr size_t kEndpointsMax = 16384;         // of all ports together
inline constexpr size_t kExternalAddressesMax = 4096;  // the same, for external addresses
inline constexpr size_t kSourceRangesMax = 65536;      // the same, for loadBalancerSourceRanges; further ranges are not admitted
inline constexpr int64_t kAffinityClientsMax = 65536;  // sources stored per endpoint
inline constexpr const char* kLinkPrefix = "coracle";  // prefix of the names of all interfaces
inline constexpr const char* kAnchorName = "coracle0";
inline constexpr uint16_t kDnsPort = 53;
inline constexpr size_t kIgnoredMax = 256;  // further addresses are ignored without a report

enum class Protocol : uint8_t { tcp, udp, sctp };
const char* protocol_name(Protocol protocol);  // "tcp", as in nft
// "TCP", "UDP", "SCTP" as in Kubernetes; "" is TCP. Errors: invalid.
Result<Protocol> parse_protocol(std::string_view text);

struct HostPort {  // a container's port on the machine's address
  Protocol protocol = Protocol::tcp;
  Ipv4 host_ip;  // empty: every address
  uint16_t host_port = 0;
  uint16_t pod_port = 0;
  auto operator<=>(const HostPort&) const = default;
};

struct PodPort {
  HostPort port;
  Ipv4 pod;
  auto operator<=>(const PodPort&) const = default;
};

struct LocalPort {  // a listening socket of this machine
  Protocol protocol = Protocol::tcp;
  Ipv4 address;  // empty: every address
  uint16_t port = 0;
  bool is_own = true;  // the machine's own: a socket of root or at a port that needs root's leave, and not of a pod
  auto operator<=>(const LocalPort&) const = default;
};

struct PortRange {
  uint16_t first = 0, last = 0;  // both included
  bool contains(uint16_t port) const { return first <= port && port <= last; }
};

struct ProxyInput {
  Ipv4Range pods, services;
  Ipv4 dns;                      // served by this machine, unless a Service with that address has endpoints
  uint16_t dns_port = kDnsPort;  // port of the built-in server at this address
  std::vector<ObjectPtr> service_objects;
  std::vector<ObjectPtr> slices;
  std::vector<PodPort> host_ports;
  uint16_t api_port = 0;  // the API's port on this machine's addresses
  // This machine's addresses and listening sockets. Needed only if has_external_addresses().
  std::set<Ipv4> local;
  std::set<LocalPort> listeners;
  // The range of ports that the kernel gives to clients. A UDP socket there does not keep a Service from its node port: it is
  // most likely a client that waits for a response.
  PortRange client_ports = {32768, 60999};
};

// Whether a Service has or may have an address other than its cluster IP, or a node port. Does not parse the objects.
bool has_external_addresses(const std::vector<ObjectPtr>& services);

// A requested address or port that was rejected.
struct Ignored {
  ObjectPtr service;    // null: a pod's host port
  std::string message;  // "external address 192.0.2.7 is ignored: …"
  const char* reason;   // of an event
};

// A destination of UDP packets; udp_flows.h explains its use.
struct UdpAddress {
  Ipv4 address;
  uint16_t port = 0;
  auto operator<=>(const UdpAddress&) const = default;
};

// The endpoints of one port, shared by the addresses of that port, of which there may be thousands. Compared by value.
class UdpEndpoints {
 public:
  explicit UdpEndpoints(std::vector<UdpAddress> sorted)
      : all_(std::make_shared<const std::vector<UdpAddress>>(std::move(sorted))) {}
  const std::vector<UdpAddress>& operator*() const { return *all_; }
  bool operator==(const UdpEndpoints& other) const { return all_ == other.all_ || *all_ == *other.all_; }

 private:
  std::shared_ptr<const std::vector<UdpAddress>> all_;
};
// By the destination of clients; without address: any address of this machine (node port, host port).
using UdpPaths = std::map<UdpAddress, std::vector<UdpEndpoints>>;

// How many ports have each element of the set of hairpins: ports of several Services may have one pod behind them.
using Hairpins = std::map<std::string, size_t>;

struct ProxyPlan {
  Ruleset rules;
  UdpPaths udp;
  std::set<std::pair<Protocol, uint16_t>> outside;  // ports of external addresses and node ports, rejected ones too
  std::vector<Ignored> ignored;                     // at most kIgnoredMax
  Hairpins hairpins;
  bool contested = false;  // several Services want one address and port
};

// Entries that are not valid in a rule (malformed addresses or DNS names) are left out.
ProxyPlan plan_proxy(const ProxyInput& input);

// A Service and its EndpointSlices at one time.
struct ServiceState {
  ObjectPtr service;  // null: there is none
  std::vector<ObjectPtr> slices;
};

// What changes in the applied rules.
struct ProxyChange {
  Ruleset before, after;  // parts, see ruleset.h
  Hairpins hairpins;      // the new numbers of those that are concerned; 0: none is left
};

// The change of the rules that `applied` are, with these hairpins, when Services change from `was` to `is`: it costs what these
// Services have, however many others there are. `machine`: the input without Services and host ports. Nothing if it may concern
// more than these Services: external addresses, node ports, UDP flows, what is rejected, the DNS server's address. Then all rules
// must be planned, as they must if the plan of the applied rules was contested.
std::optional<ProxyChange> plan_change(const ProxyInput& machine, const std::vector<ServiceState>& was,
                                       const std::vector<ServiceState>& is, const Ruleset& applied, const Hairpins& hairpins);

}  // namespace coracle::network
