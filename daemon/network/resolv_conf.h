// SPDX-License-Identifier: Apache-2.0
// resolv.conf, read: whom this machine asks for names. Pure. Source: resolv.conf(5).
#pragma once

#include <string_view>
#include <vector>

#include "daemon/network/address.h"

namespace coracle::network {

inline constexpr size_t kUpstreamsMax = 3;  // as resolv.conf(5)

// The nameservers in order, each once, without `ours` (asking ourselves would go round in a circle). IPv6 servers are left
// out until there is IPv6; lines that cannot be read are, too.
std::vector<Ipv4> parse_nameservers(std::string_view text, const std::vector<Ipv4>& ours);

}  // namespace coracle::network
