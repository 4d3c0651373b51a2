// SPDX-License-Identifier: Apache-2.0
// DnsServer: the cluster's DNS on UDP and TCP, one thread over one epoll.
//
//   packet ▶ decide (pure) ─┬▶ response from the cluster's zone ▶ client
//                           └▶ forward: a socket per query (random port and id) ▶ the machine's resolvers in turn
//                                 ▶ response checked against its query ▶ (behind an alias: joined) ▶ client
//
// The cluster's zone works while no resolver is reachable. resolv.conf is checked for changes when a query is forwarded, so an
// idle server does no work. Source: RFC 1035, 5452 (forged answers), 7766 (TCP).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/network/address.h"
#include "daemon/network/zone.h"

namespace coracle::network {

// CoreDNS's usual configuration has a limit of 1000 forwarded queries and none for connections.
inline constexpr size_t kForwardsMax = 256;       // concurrent forwarded queries; beyond, the client gets SERVFAIL
inline constexpr size_t kDnsConnectionsMax = 64;  // TCP clients; beyond, the longest idle one is closed
inline constexpr size_t kForwardsPerConnectionMax = 16;

struct DnsServerConfig {
  ZoneConfig zone;
  Ipv4 listen;                  // the DNS address
  std::vector<uint16_t> ports;  // candidates; the first free one is used
  std::string resolv_conf = "/etc/resolv.conf";
  std::vector<Ipv4> ours;  // not used as upstream servers, because that would be a loop
  uint16_t upstream_port = 53;
};

class DnsServer {
 public:
  // Binds the sockets. `source` must outlive the server. Errors: the kernel's error for the last port.
  static Result<std::unique_ptr<DnsServer>> open(DnsServerConfig config, const ZoneSource& source);
  ~DnsServer();
  uint16_t port() const;
  void start();
  void stop();

 private:
  struct State;
  explicit DnsServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace coracle::network
