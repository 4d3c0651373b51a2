// SPDX-License-Identifier: Apache-2.0
// DNS messages: packets in, questions out; answers in, packets out. The wall around ldns: its C memory is owned here, what
// comes from the network is read here, and nothing else of the house sees either.
// Source: RFC 1035 (messages), 6891 (EDNS0), 2308 (negative answers), 8482 (ANY).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/network/zone.h"
#include "runtime/base/result.h"

namespace coracle::network {

inline constexpr size_t kDnsHeaderBytes = 12;
inline constexpr size_t kUdpAnswerPlainMax = 512;  // for who does not speak EDNS0
inline constexpr size_t kUdpAnswerMax = 1232;      // what passes everywhere unfragmented
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
  std::string name_asked;  // as it came; the answer repeats it (0x20 randomisation)
  uint16_t type = 0, klass = 0;
  bool edns = false;
  uint8_t edns_version = 0;
  uint16_t udp_bytes_max = kUdpAnswerPlainMax;
};

// Errors: bad_request for what is no question of one name (then answer format_error if there is a header at all);
// cancelled for what is itself an answer and must be dropped without a word.
Result<Question> parse_question(std::string_view packet);

// The id of any message; nothing when it has no header.
std::optional<uint16_t> message_id(std::string_view packet);
void set_message_id(std::string& packet, uint16_t id);

// An answer without records. `packet` only needs a header.
std::string encode_error(std::string_view packet, Rcode code);
std::string encode_error(const Question& question, Rcode code);

// Our zone's answer, cut (and marked as cut) where it is longer than `bytes_max`.
std::string encode(const Question& question, const ZoneAnswer& answer, const ZoneConfig& zone, size_t bytes_max);

// A question for `name` (of the same type) to ask upstream.
std::string encode_question(uint16_t id, std::string_view name, uint16_t type);
// Is `reply` an answer to what `asked` asks: same id, same question?
bool answers(std::string_view reply, std::string_view asked);
// The alias's records, then what upstream found behind it. Errors: bad_request when the reply cannot be read.
Result<std::string> encode_behind_alias(const Question& question, const ZoneAnswer& alias, std::string_view upstream_reply,
                                        size_t bytes_max);

}  // namespace coracle::network
