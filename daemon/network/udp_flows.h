// SPDX-License-Identifier: Apache-2.0
// Finds the UDP flows that must be deleted from connection tracking. The kernel translates a flow by its first packet and keeps
// the translation while packets come. So a client that keeps its socket continues to send to a deleted pod, or untranslated to an
// address that was not a Service's yet. Pure and level-based: the remembered paths are compared with the current ones, which also
// covers changes while no daemon was running. (TCP connections end by themselves.)
#pragma once

#include <set>

#include "daemon/network/proxy.h"
#include "runtime/sys/netfilter.h"

namespace coracle::network {

class UdpFlows {
 public:
  // `before`: the paths until now. `local`: this machine's addresses, where node ports and host ports are open. `services`: the
  // range of cluster IPs; a translated flow there without a current path belongs to a Service that was deleted while no daemon
  // was running.
  UdpFlows(UdpPaths before, UdpPaths now, std::set<Ipv4> local, const Ipv4Range& services = {});
  bool stale(const sys::UdpFlow& flow) const;

 private:
  UdpPaths before_, now_;
  std::set<Ipv4> local_;
  Ipv4Range services_;
};

}  // namespace coracle::network
