// SPDX-License-Identifier: Apache-2.0
// Which UDP flows the kernel must forget. It translates a flow once, by its first packet, and keeps to that as long as
// packets come: a client that keeps its socket speaks to a pod that is gone, or to the port's emptiness from before the
// Service was there. Pure and level-based: what is remembered is compared with what should be, so a change that happened
// while no daemon ran is healed, too. (TCP heals by itself: its connections end.)
#pragma once

#include <set>

#include "daemon/network/proxy.h"
#include "runtime/sys/netfilter.h"

namespace coracle::network {

class UdpFlows {
 public:
  // `before`: what was led where until now. `local`: this machine's addresses, where node and host ports answer. `services`: the
  // range of cluster addresses; what was translated there and is led nowhere now is of a Service that went while nobody looked.
  UdpFlows(UdpPaths before, UdpPaths now, std::set<Ipv4> local, const Ipv4Range& services = {});
  bool stale(const sys::UdpFlow& flow) const;

 private:
  UdpPaths before_, now_;
  std::set<Ipv4> local_;
  Ipv4Range services_;
};

}  // namespace coracle::network
