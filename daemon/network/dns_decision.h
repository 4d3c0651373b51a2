// SPDX-License-Identifier: Apache-2.0
// What to do with a packet that arrived at the DNS server: answer, forward, or keep silent. Pure; the sockets are
// dns_server.h's. Source: RFC 1035, 6891.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/network/dns_message.h"
#include "daemon/network/zone.h"

namespace coracle::network {

// The records behind an alias are somebody else's: the reply is put together when they are known.
struct PendingAlias {
  Question question;
  ZoneAnswer answer;
  size_t bytes_max = 0;
};

struct DnsDecision {
  enum class What { reply, forward, ignore } what = What::ignore;
  std::string packet;                 // the reply, or the question to ask upstream
  std::optional<PendingAlias> alias;  // with forward
};

DnsDecision decide(std::string_view packet, bool over_tcp, const ZoneConfig& zone, const ZoneSource& source);

}  // namespace coracle::network
