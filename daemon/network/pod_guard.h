// SPDX-License-Identifier: Apache-2.0
// PodGuard: source address validation. It drops packets on the machine's end of a pod's veth whose IP or MAC address is not the
// pod's, and ARP packets for other addresses, whatever the pod does to its interface.
//
//   pod ──veth── ip prerouting, before connection tracking: (interface, MAC, IP) in @pods? ─▶ routing
//           └─── arp input:                                  (interface, MAC, IP) in @pods? ─▶ neighbour table
//
// It also drops packets from pods to this machine's loopback, which the veth of a pod with host ports would route (proxy.h). The
// tables `ip coracle-pods` and `arp coracle-pods` are separate from the Services' table (ruleset.h). They exist before the first
// pod, and a pod's entry exists before its veth. A packet costs one hash lookup. An entry stays after its pod until the tables
// are replaced: an interface of that name can only belong to that address. IPv6 is off on both ends of a veth (pod_network.h).
// Thread-safe. Source: nft(8), BCP 38.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "daemon/network/address.h"
#include "daemon/network/ruleset.h"

namespace coracle::network {

inline constexpr const char* kPodTableName = "coracle-pods";

// The desired tables for these pods.
Ruleset pod_rules(const std::vector<Ipv4>& pods);      // ip
Ruleset pod_arp_rules(const std::vector<Ipv4>& pods);  // arp
// A pod's entry as the kernel stores it: the interface name in 16 bytes, the MAC address in 8, the IP address in 4.
std::string pod_entry(Ipv4 pod);

class PodGuard {
 public:
  // Replaces the tables. If the kernel cannot filter ARP, only the `ip` table is created, with a warning. Errors: nft's message.
  Result<void> replace(const std::vector<Ipv4>& pods);
  // Adds the pod's entry; call before its veth exists. Blocks for microseconds. Errors: not_found if a table is missing.
  Result<void> admit(Ipv4 pod) const;
  static Result<void> remove();  // removes the tables; succeeds if there are none

 private:
  std::atomic<bool> has_arp_ = true;
};

}  // namespace coracle::network
