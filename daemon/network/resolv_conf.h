// SPDX-License-Identifier: Apache-2.0
// Reads resolv.conf: the name servers of this machine. Pure. Source: resolv.conf(5).
#pragma once

#include <string_view>
#include <vector>

#include "daemon/network/address.h"

namespace coracle::network {

inline constexpr size_t kUpstreamsMax = 3;  // as in resolv.conf(5)

// The nameservers in order, without duplicates and without `ours` (forwarding to this server would be a loop). IPv6 servers and
// malformed lines are left out.
std::vector<Ipv4> parse_nameservers(std::string_view text, const std::vector<Ipv4>& ours);

}  // namespace coracle::network
