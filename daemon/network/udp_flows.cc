// SPDX-License-Identifier: Apache-2.0
// See udp_flows.h.
#include "daemon/network/udp_flows.h"

namespace coracle::network {

UdpFlows::Fronts UdpFlows::fronts_of(const std::set<UdpPath>& paths) {
  Fronts out;
  for (const UdpPath& path : paths) out[{path.to, path.port}].insert({path.endpoint, path.endpoint_port});
  return out;
}

UdpFlows::UdpFlows(const std::set<UdpPath>& before, const std::set<UdpPath>& now, std::set<Ipv4> local, const Ipv4Range& services)
    : before_(fronts_of(before)), now_(fronts_of(now)), local_(std::move(local)), services_(services) {}

bool UdpFlows::stale(const sys::UdpFlow& flow) const {
  const Ipv4 destination{flow.destination};
  const Endpoint answering{Ipv4{flow.answering}, flow.answering_port};
  const bool translated = answering != Endpoint{destination, flow.destination_port};
  for (Ipv4 to : {destination, Ipv4{}}) {
    if (!to && !local_.contains(destination)) continue;
    const Front front{to, flow.destination_port};
    if (auto found = now_.find(front); found != now_.end()) return !found->second.contains(answering);
    if (before_.contains(front)) return translated;
  }
  return translated && services_.contains(destination);
}

}  // namespace coracle::network
