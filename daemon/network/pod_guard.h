// SPDX-License-Identifier: Apache-2.0
// PodGuard: a pod sends from its own address only, whatever it may do to its interface. What comes from a pod's wire with another
// IP or MAC address than that wire's, and ARP that speaks for another, is dropped on the machine's end of the wire.
//
//   pod ──wire── ip prerouting, before connection tracking: (wire, MAC, IP) in @pods? ─▶ routing
//           └─── arp input:                                  (wire, MAC, IP) in @pods? ─▶ neighbours
//
// Nor does a pod reach this machine's loopback, to which the wire of a pod with host ports would lead (proxy.h).
// The tables `ip coracle-pods` and `arp coracle-pods` are apart from the Services' (ruleset.h): they are there before the first
// pod is, and an entry before its pod's wire. A packet costs one lookup in a hash. An entry outlives its pod until the tables are
// made anew: a wire of that name can only be that address's. IPv6 is off on both ends of a wire (pod_network.h).
// Thread-safe. Source: nft(8), BCP 38.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "daemon/network/address.h"
#include "daemon/network/ruleset.h"

namespace coracle::network {

inline constexpr const char* kPodTableName = "coracle-pods";

// The tables as they should be, for these pods.
Ruleset pod_rules(const std::vector<Ipv4>& pods);      // ip
Ruleset pod_arp_rules(const std::vector<Ipv4>& pods);  // arp
// A pod's entry as the kernel keeps it: the wire's name in 16 bytes, the MAC address in 8, the IP address in 4.
std::string pod_entry(Ipv4 pod);

class PodGuard {
 public:
  // Makes the tables anew. A kernel without filtering of ARP gets the other one alone, with a warning. Errors: nft's own words.
  Result<void> replace(const std::vector<Ipv4>& pods);
  // Lets the pod send; to be called before its wire is there. Blocks for microseconds. Errors: not_found when a table is missing.
  Result<void> admit(Ipv4 pod) const;
  static Result<void> remove();  // the tables; succeeds when there are none

 private:
  std::atomic<bool> has_arp_ = true;
};

}  // namespace coracle::network
