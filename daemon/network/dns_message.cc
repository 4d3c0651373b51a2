// SPDX-License-Identifier: Apache-2.0
// See dns_message.h.
#include "daemon/network/dns_message.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/base/text.h"

// clang-format off
#include <ldns/ldns.h>  // last: it may define true and false
// clang-format on

namespace coracle::network {
namespace {

// ---- owners of ldns's objects ----

struct Free {
  void operator()(ldns_pkt* packet) const { ldns_pkt_free(packet); }
  void operator()(ldns_rr* rr) const { ldns_rr_free(rr); }
  void operator()(ldns_rdf* rdf) const { ldns_rdf_deep_free(rdf); }
  void operator()(ldns_buffer* buffer) const { ldns_buffer_free(buffer); }
  void operator()(char* text) const { std::free(text); }
};
using Packet = std::unique_ptr<ldns_pkt, Free>;
using Rr = std::unique_ptr<ldns_rr, Free>;
using Rdf = std::unique_ptr<ldns_rdf, Free>;
using Buffer = std::unique_ptr<ldns_buffer, Free>;
using Text = std::unique_ptr<char, Free>;

constexpr uint8_t kQrBit = 0x80;  // third byte of the header
constexpr uint8_t kRdBit = 0x01;
constexpr uint8_t kOpcodeMask = 0x78;
constexpr uint32_t kSoaRefreshSeconds = 7200, kSoaRetrySeconds = 1800, kSoaExpireSeconds = 86400;

Result<Packet> read(std::string_view bytes) {
  ldns_pkt* packet = nullptr;
  ldns_status status =
      ldns_wire2pkt(&packet, reinterpret_cast<const uint8_t*>(bytes.data()), std::min(bytes.size(), kDnsMessageMax));
  if (status != LDNS_STATUS_OK) return Error(Code::bad_request, ldns_get_errorstr_by_id(status));
  return Packet(packet);
}

std::string write(const ldns_pkt& packet) {
  Buffer buffer(ldns_buffer_new(kUdpAnswerMax));
  if (!buffer || ldns_pkt2buffer_wire(buffer.get(), &packet) != LDNS_STATUS_OK) return "";
  return std::string(reinterpret_cast<const char*>(ldns_buffer_begin(buffer.get())), ldns_buffer_position(buffer.get()));
}

std::string dotted(const ldns_rdf* dname) {
  Text text(ldns_rdf2str(dname));
  std::string out = text ? text.get() : "";
  if (out.ends_with('.')) out.pop_back();
  return out;
}

Rdf dname(std::string_view name) { return Rdf(ldns_dname_new_frm_str((std::string(name) + ".").c_str())); }
Rdf number16(uint16_t value) { return Rdf(ldns_native2rdf_int16(LDNS_RDF_TYPE_INT16, value)); }
Rdf number32(uint32_t value) { return Rdf(ldns_native2rdf_int32(LDNS_RDF_TYPE_INT32, value)); }

Rdf address(Ipv4 ip) {
  uint8_t bytes[4] = {uint8_t(ip.value >> 24), uint8_t(ip.value >> 16), uint8_t(ip.value >> 8), uint8_t(ip.value)};
  return Rdf(ldns_rdf_new_frm_data(LDNS_RDF_TYPE_A, sizeof bytes, bytes));
}

Rdf character_string(const std::string& text) {  // one length byte, then the text
  std::string bytes = char(std::min<size_t>(text.size(), 255)) + text.substr(0, 255);
  return Rdf(ldns_rdf_new_frm_data(LDNS_RDF_TYPE_STR, bytes.size(), bytes.data()));
}

// Null if it contains an invalid name (an ExternalName may be any text).
Rr make_rr(std::string_view owner, uint16_t type, std::vector<Rdf> fields) {
  Rr rr(ldns_rr_new());
  Rdf name = dname(owner);
  if (!rr || !name) return nullptr;
  ldns_rr_set_owner(rr.get(), name.release());
  ldns_rr_set_type(rr.get(), ldns_rr_type(type));
  ldns_rr_set_class(rr.get(), LDNS_RR_CLASS_IN);
  ldns_rr_set_ttl(rr.get(), kZoneTtlSeconds);
  for (Rdf& field : fields) {
    if (!field) return nullptr;
    if (ldns_rr_push_rdf(rr.get(), field.get())) (void)field.release();  // owned by the record now
  }
  return rr;
}

template <typename... Fields>
std::vector<Rdf> list(Fields... fields) {
  std::vector<Rdf> out;
  (out.push_back(std::move(fields)), ...);
  return out;
}

Rr soa(const std::string& owner, const ZoneConfig& zone) {
  return make_rr(
      owner, uint16_t(RecordType::soa),
      list(dname("ns.dns." + zone.domain), dname("hostmaster." + zone.domain), number32(1), number32(kSoaRefreshSeconds),
           number32(kSoaRetrySeconds), number32(kSoaExpireSeconds), number32(kZoneTtlSeconds)));
}

Rr rr_of(const Record& record, const ZoneConfig& zone) {
  switch (record.type) {
    case RecordType::a: return make_rr(record.name, uint16_t(record.type), list(address(record.address)));
    case RecordType::soa: return soa(record.name, zone);
    case RecordType::txt: return make_rr(record.name, uint16_t(record.type), list(character_string(record.target)));
    case RecordType::srv:
      return make_rr(record.name, uint16_t(record.type),
                     list(number16(0), number16(100), number16(record.port), dname(record.target)));
    case RecordType::cname:
    case RecordType::ns:
    case RecordType::ptr: return make_rr(record.name, uint16_t(record.type), list(dname(record.target)));
    case RecordType::aaaa:
    case RecordType::any: break;
  }
  return nullptr;
}

void push(ldns_pkt& packet, ldns_pkt_section section, Rr rr) {
  if (rr && ldns_pkt_push_rr(&packet, section, rr.get())) (void)rr.release();  // owned by the packet now
}

// Header, question and EDNS record of a response.
Packet reply_to(const Question& question, Rcode code) {
  Packet packet(ldns_pkt_new());
  ldns_pkt_set_id(packet.get(), question.id);
  ldns_pkt_set_opcode(packet.get(), ldns_pkt_opcode(question.opcode));
  ldns_pkt_set_qr(packet.get(), true);
  ldns_pkt_set_rd(packet.get(), question.recursion_desired);
  ldns_pkt_set_ra(packet.get(), true);
  ldns_pkt_set_cd(packet.get(), question.checking_disabled);
  ldns_pkt_set_rcode(packet.get(), uint8_t(uint8_t(code) & 0xf));
  Rr asked(ldns_rr_new());
  if (Rdf name = dname(question.name_asked); name && asked) {
    ldns_rr_set_question(asked.get(), true);
    ldns_rr_set_owner(asked.get(), name.release());
    ldns_rr_set_type(asked.get(), ldns_rr_type(question.type));
    ldns_rr_set_class(asked.get(), ldns_rr_class(question.klass));
    push(*packet, LDNS_SECTION_QUESTION, std::move(asked));
  }
  if (question.edns) {
    ldns_pkt_set_edns_udp_size(packet.get(), kUdpAnswerMax);
    ldns_pkt_set_edns_extended_rcode(packet.get(), uint8_t(uint8_t(code) >> 4));
  }
  return packet;
}

// The question section of a packet with exactly one question, in lower case; empty if it has not exactly one.
std::string question_bytes(std::string_view packet) {
  if (packet.size() < kDnsHeaderBytes || packet[4] != 0 || packet[5] != 1) return "";
  size_t at = kDnsHeaderBytes;
  while (at < packet.size() && packet[at] != 0) {
    uint8_t length = uint8_t(packet[at]);
    if (length > 63) return "";  // a compressed name, but there is nothing to point to yet
    at += size_t(length) + 1;
  }
  size_t end = at + 1 + 4;  // the root label, type, class
  if (end > packet.size()) return "";
  return to_lower(packet.substr(kDnsHeaderBytes, end - kDnsHeaderBytes));
}

std::string encode_first(const Question& question, const ZoneAnswer& answer, const ZoneConfig& zone, size_t answers,
                         bool additional) {
  Packet packet = reply_to(question, answer.exists ? Rcode::no_error : Rcode::name_error);
  ldns_pkt_set_aa(packet.get(), true);
  ldns_pkt_set_tc(packet.get(), answers < answer.answer.size());
  // Aliases come first. The addresses after them are shuffled, for clients that use the first one.
  size_t aliases = 0;
  while (aliases < answer.answer.size() && answer.answer[aliases].type == RecordType::cname) ++aliases;
  size_t rest = answer.answer.size() - aliases;
  for (size_t i = 0; i < answers; ++i) {
    size_t at = i < aliases ? i : aliases + (i - aliases + question.id) % rest;
    push(*packet, LDNS_SECTION_ANSWER, rr_of(answer.answer[at], zone));
  }
  if (rest == 0 && !answer.authority.empty()) push(*packet, LDNS_SECTION_AUTHORITY, soa(answer.authority, zone));
  if (additional)
    for (const Record& record : answer.additional) push(*packet, LDNS_SECTION_ADDITIONAL, rr_of(record, zone));
  return write(*packet);
}

}  // namespace

Result<Question> parse_question(std::string_view packet) {
  if (packet.size() >= kDnsHeaderBytes && (uint8_t(packet[2]) & kQrBit) != 0)
    return Error(Code::cancelled, "an answer where a question is expected");
  Packet parsed = TRY(read(packet));
  if (ldns_pkt_qdcount(parsed.get()) != 1) return Error(Code::bad_request, "not one question");
  const ldns_rr* asked = ldns_rr_list_rr(ldns_pkt_question(parsed.get()), 0);
  if (asked == nullptr || ldns_rr_owner(asked) == nullptr) return Error(Code::bad_request, "a question without a name");
  Question question;
  question.id = ldns_pkt_id(parsed.get());
  question.opcode = uint8_t(ldns_pkt_get_opcode(parsed.get()));
  question.recursion_desired = ldns_pkt_rd(parsed.get());
  question.checking_disabled = ldns_pkt_cd(parsed.get());
  question.name_asked = dotted(ldns_rr_owner(asked));
  question.name = to_lower(question.name_asked);
  question.type = uint16_t(ldns_rr_get_type(asked));
  question.klass = uint16_t(ldns_rr_get_class(asked));
  question.edns = ldns_pkt_edns(parsed.get());
  if (question.edns) {
    question.edns_version = ldns_pkt_edns_version(parsed.get());
    question.udp_bytes_max = std::clamp<uint16_t>(ldns_pkt_edns_udp_size(parsed.get()), kUdpAnswerPlainMax, kUdpAnswerMax);
  }
  return question;
}

std::optional<uint16_t> message_id(std::string_view packet) {
  if (packet.size() < kDnsHeaderBytes) return std::nullopt;
  return uint16_t(uint8_t(packet[0]) << 8 | uint8_t(packet[1]));
}

void set_message_id(std::string& packet, uint16_t id) {
  packet[0] = char(id >> 8);
  packet[1] = char(id & 0xff);
}

std::string encode_error(std::string_view packet, Rcode code) {
  if (packet.size() < kDnsHeaderBytes) return "";
  std::string out(packet.substr(0, 2));
  out += char(kQrBit | (uint8_t(packet[2]) & (kOpcodeMask | kRdBit)));
  out += char(0x80 | (uint8_t(code) & 0xf));  // RA bit: recursion available
  return out.append(8, '\0');
}

std::string encode_error(const Question& question, Rcode code) { return write(*reply_to(question, code)); }

std::string encode(const Question& question, const ZoneAnswer& answer, const ZoneConfig& zone, size_t bytes_max) {
  std::string packet = encode_first(question, answer, zone, answer.answer.size(), true);
  if (packet.size() > bytes_max) packet = encode_first(question, answer, zone, answer.answer.size(), false);
  for (size_t fit = answer.answer.size(); packet.size() > bytes_max && fit > 0;) {
    fit /= 2;
    packet = encode_first(question, answer, zone, fit, false);
  }
  return packet;
}

std::string encode_question(uint16_t id, std::string_view name, uint16_t type) {
  Packet packet(ldns_pkt_new());
  ldns_pkt_set_id(packet.get(), id);
  ldns_pkt_set_rd(packet.get(), true);
  Rr asked(ldns_rr_new());
  Rdf owner = dname(name);
  if (!owner || !asked) return "";
  ldns_rr_set_question(asked.get(), true);
  ldns_rr_set_owner(asked.get(), owner.release());
  ldns_rr_set_type(asked.get(), ldns_rr_type(type));
  ldns_rr_set_class(asked.get(), LDNS_RR_CLASS_IN);
  push(*packet, LDNS_SECTION_QUESTION, std::move(asked));
  ldns_pkt_set_edns_udp_size(packet.get(), kUdpAnswerMax);
  return write(*packet);
}

bool answers(std::string_view reply, std::string_view asked) {
  if (reply.size() < kDnsHeaderBytes || (uint8_t(reply[2]) & kQrBit) == 0) return false;
  if (message_id(reply) != message_id(asked)) return false;
  std::string question = question_bytes(asked);
  return !question.empty() && question_bytes(reply) == question;
}

Result<std::string> encode_behind_alias(const Question& question, const ZoneAnswer& alias, std::string_view upstream_reply,
                                        size_t bytes_max) {
  Packet upstream = TRY(read(upstream_reply));
  Packet packet = reply_to(question, Rcode::no_error);
  ldns_pkt_set_rcode(packet.get(), uint8_t(ldns_pkt_get_rcode(upstream.get())));
  ldns_pkt_set_tc(packet.get(), ldns_pkt_tc(upstream.get()));
  for (const Record& record : alias.answer) push(*packet, LDNS_SECTION_ANSWER, rr_of(record, ZoneConfig{}));
  for (auto [section, from] : {std::pair{LDNS_SECTION_ANSWER, ldns_pkt_answer(upstream.get())},
                               std::pair{LDNS_SECTION_AUTHORITY, ldns_pkt_authority(upstream.get())}})
    for (size_t i = 0; i < ldns_rr_list_rr_count(from); ++i) push(*packet, section, Rr(ldns_rr_clone(ldns_rr_list_rr(from, i))));
  std::string out = write(*packet);
  if (out.size() <= bytes_max) return out;
  Packet bare = reply_to(question, Rcode::no_error);  // truncated: the client repeats the query over TCP
  ldns_pkt_set_tc(bare.get(), true);
  return write(*bare);
}

}  // namespace coracle::network
