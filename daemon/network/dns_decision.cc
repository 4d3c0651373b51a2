// SPDX-License-Identifier: Apache-2.0
// See dns_decision.h.
#include "daemon/network/dns_decision.h"

namespace coracle::network {
namespace {

constexpr uint16_t kClassIn = 1;
constexpr uint16_t kTypeIxfr = 251, kTypeAxfr = 252;

DnsDecision reply(std::string packet) {
  // Without a packet to send, the query is ignored.
  return {packet.empty() ? DnsDecision::What::ignore : DnsDecision::What::reply, std::move(packet), {}};
}

}  // namespace

DnsDecision decide(std::string_view packet, bool over_tcp, const ZoneConfig& zone, const ZoneSource& source) {
  Result<Question> parsed = parse_question(packet);
  if (!parsed && parsed.error().code() == Code::cancelled) return {};
  if (!parsed) return reply(encode_error(packet, Rcode::format_error));
  const Question& question = *parsed;
  if (question.opcode != 0) return reply(encode_error(question, Rcode::not_implemented));
  if (question.edns && question.edns_version != 0) return reply(encode_error(question, Rcode::bad_version));
  if (question.klass != kClassIn) return reply(encode_error(question, Rcode::refused));
  if (question.type == kTypeAxfr || question.type == kTypeIxfr) return reply(encode_error(question, Rcode::refused));

  size_t bytes_max = over_tcp ? kDnsMessageMax : question.udp_bytes_max;
  std::optional<ZoneAnswer> found = answer(zone, source, question.name, RecordType(question.type));
  if (!found) return {DnsDecision::What::forward, std::string(packet), {}};
  if (found->outside.empty()) return reply(encode(question, *found, zone, bytes_max));
  std::string ask = encode_question(question.id, found->outside, question.type);
  if (ask.empty()) return reply(encode(question, *found, zone, bytes_max));  // the alias's target is not a valid name
  return {DnsDecision::What::forward, std::move(ask), PendingAlias{question, std::move(*found), bytes_max}};
}

}  // namespace coracle::network
