// SPDX-License-Identifier: Apache-2.0
// DnsServer: the cluster's DNS on UDP and TCP, one thread over one epoll.
//
//   packet ▶ decide (pure) ─┬▶ our zone's answer ▶ asker
//                           └▶ forwarded: a socket of its own (random port and id) ▶ the machine's resolvers in turn
//                                 ▶ checked against its question ▶ (behind an alias: put together) ▶ asker
//
// What is ours is answered while every resolver is out of reach. resolv.conf is looked at again when a question is to be
// forwarded, so an idle server does nothing at all.
// Source: RFC 1035, 5452 (forged answers), 7766 (TCP).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/network/address.h"
#include "daemon/network/zone.h"

namespace coracle::network {

// CoreDNS has 1000 of the first in the usual settings, and no limit for the others.
inline constexpr size_t kForwardsMax = 256;       // questions under way; beyond, the asker hears SERVFAIL
inline constexpr size_t kDnsConnectionsMax = 64;  // TCP askers; beyond, the longest silent one is hung up on
inline constexpr size_t kForwardsPerConnectionMax = 16;

struct DnsServerConfig {
  ZoneConfig zone;
  Ipv4 listen;                  // the DNS address
  std::vector<uint16_t> ports;  // the first one that is free
  std::string resolv_conf = "/etc/resolv.conf";
  std::vector<Ipv4> ours;  // never asked: we would ask ourselves
  uint16_t upstream_port = 53;
};

class DnsServer {
 public:
  // Binds its sockets. `source` outlives it. Errors: what the kernel said of the last port.
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
