// SPDX-License-Identifier: Apache-2.0
// Which UDP flows the kernel must forget. It translates a flow once, by its first packet, and keeps to that as long as
// packets come: a client that keeps its socket speaks to a pod that is gone, or to the port's emptiness from before the
// Service was there. Pure and level-based: what is remembered is compared with what should be, so a change that happened
// while no daemon ran is healed, too. (TCP heals by itself: its connections end.)
#pragma once

#include <map>
#include <set>
#include <utility>

#include "daemon/network/proxy.h"
#include "runtime/sys/netfilter.h"

namespace coracle::network {

class UdpFlows {
 public:
  // `before`: what was led where until now. `local`: this machine's addresses, where node and host ports answer. `services`: the
  // range of cluster addresses; what was translated there and is led nowhere now is of a Service that went while nobody looked.
  UdpFlows(const std::set<UdpPath>& before, const std::set<UdpPath>& now, std::set<Ipv4> local, const Ipv4Range& services = {});
  bool stale(const sys::UdpFlow& flow) const;

 private:
  using Front = std::pair<Ipv4, uint16_t>;  // where clients send to; no address: a port of this machine's
  using Endpoint = std::pair<Ipv4, uint16_t>;
  using Fronts = std::map<Front, std::set<Endpoint>>;
  static Fronts fronts_of(const std::set<UdpPath>& paths);
  Fronts before_, now_;
  std::set<Ipv4> local_;
  Ipv4Range services_;
};

}  // namespace coracle::network
