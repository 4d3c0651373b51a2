// SPDX-License-Identifier: Apache-2.0
// See udp_flows.h.
#include "daemon/network/udp_flows.h"

#include <algorithm>

namespace coracle::network {

UdpFlows::UdpFlows(UdpPaths before, UdpPaths now, std::set<Ipv4> local, const Ipv4Range& services)
    : before_(std::move(before)), now_(std::move(now)), local_(std::move(local)), services_(services) {}

bool UdpFlows::stale(const sys::UdpFlow& flow) const {
  const Ipv4 destination{flow.destination};
  const UdpAddress answering{Ipv4{flow.answering}, flow.answering_port};
  const bool translated = answering != UdpAddress{destination, flow.destination_port};
  for (Ipv4 to : {destination, Ipv4{}}) {
    if (!to && !local_.contains(destination)) continue;
    const UdpAddress front{to, flow.destination_port};
    if (auto found = now_.find(front); found != now_.end())
      return std::ranges::none_of(found->second,
                                  [&](const UdpEndpoints& one) { return std::ranges::binary_search(*one, answering); });
    if (before_.contains(front)) return translated;
  }
  return translated && services_.contains(destination);
}

}  // namespace coracle::network
