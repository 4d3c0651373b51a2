// SPDX-License-Identifier: Apache-2.0
// DNS messages: parses queries and encodes responses. It is the only user of ldns: it owns ldns's C memory and parses all packets
// from the network. Source: RFC 1035 (messages), 6891 (EDNS0), 2308 (negative answers), 8482 (ANY).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/network/zone.h"
#include "runtime/base/result.h"

namespace coracle::network {

inline constexpr size_t kDnsHeaderBytes = 12;
inline constexpr size_t kUdpAnswerPlainMax = 512;  // for clients without EDNS0
inline constexpr size_t kUdpAnswerMax = 1232;      // a size that is not fragmented on common networks
inline constexpr size_t kDnsMessageMax = 65535;    // over TCP

enum class Rcode : uint8_t {
  no_error = 0,
  format_error = 1,
  server_failure = 2,
  name_error = 3,
  not_implemented = 4,
  refused = 5,
  bad_version = 16
};

struct Question {
  uint16_t id = 0;
  uint8_t opcode = 0;
  bool recursion_desired = false, checking_disabled = false;
  std::string name;        // dotted, lower case, without the last dot
  std::string name_asked;  // as received; the response repeats it (0x20 randomization)
  uint16_t type = 0, klass = 0;
  bool edns = false;
  uint8_t edns_version = 0;
  uint16_t udp_bytes_max = kUdpAnswerPlainMax;
};

// Errors: bad_request if the packet is not a query of one name (respond with format_error if it has a header); cancelled if it is
// a response, which must be dropped silently.
Result<Question> parse_question(std::string_view packet);

// The id of any message; nullopt if it has no header.
std::optional<uint16_t> message_id(std::string_view packet);
void set_message_id(std::string& packet, uint16_t id);

// A response without records. `packet` needs only a header.
std::string encode_error(std::string_view packet, Rcode code);
std::string encode_error(const Question& question, Rcode code);

// A response from the cluster's zone, truncated (with the TC bit) if it is longer than `bytes_max`.
std::string encode(const Question& question, const ZoneAnswer& answer, const ZoneConfig& zone, size_t bytes_max);

// A query of `name` with this type, for the upstream server.
std::string encode_question(uint16_t id, std::string_view name, uint16_t type);
// Whether `reply` is a response to the query `asked`: same id, same question.
bool answers(std::string_view reply, std::string_view asked);
// A response with the alias's records and those that the upstream server found for its target. Errors: bad_request if the reply
// cannot be parsed.
Result<std::string> encode_behind_alias(const Question& question, const ZoneAnswer& alias, std::string_view upstream_reply,
                                        size_t bytes_max);

}  // namespace coracle::network
