// SPDX-License-Identifier: Apache-2.0
// Decides what to do with a packet that the DNS server has received: reply, forward or ignore it. Pure; the sockets are in
// dns_server.h. Source: RFC 1035, 6891.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/network/dns_message.h"
#include "daemon/network/zone.h"

namespace coracle::network {

// A reply whose CNAME target is outside of the zone. The target is resolved upstream, and the reply is completed with the result.
struct PendingAlias {
  Question question;
  ZoneAnswer answer;
  size_t bytes_max = 0;
};

struct DnsDecision {
  enum class What { reply, forward, ignore } what = What::ignore;
  std::string packet;                 // the reply, or the query for the upstream server
  std::optional<PendingAlias> alias;  // with forward
};

DnsDecision decide(std::string_view packet, bool over_tcp, const ZoneConfig& zone, const ZoneSource& source);

}  // namespace coracle::network
