// SPDX-License-Identifier: Apache-2.0
// DNS packets: parsing, encoding, and refusal of malformed ones.
#include "daemon/network/dns_message.h"

#include <gtest/gtest.h>

namespace coracle::network {
namespace {

std::string bytes(std::initializer_list<int> list) { return std::string(list.begin(), list.end()); }

// A query for KuBe.local A, id 0x1234, recursion desired.
std::string question_packet() {
  return bytes({0x12, 0x34, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 'K', 'u', 'B', 'e', 5, 'l', 'o', 'c', 'a', 'l', 0, 0, 1, 0, 1});
}

std::string with_edns(int udp_bytes, int version = 0) {
  std::string packet = question_packet();
  packet[11] = 1;
  return packet + bytes({0, 0, 41, udp_bytes >> 8, udp_bytes & 255, 0, version, 0, 0, 0, 0});
}

ZoneConfig zone() {
  ZoneConfig config;
  config.dns = MUST(Ipv4::parse("10.96.0.10"));
  return config;
}

ZoneAnswer addresses(size_t count) {
  ZoneAnswer answer;
  answer.authority = "cluster.local";
  for (size_t i = 0; i < count; ++i)
    answer.answer.push_back({"kube.local", RecordType::a, Ipv4{0x0a000001 + uint32_t(i)}, "", 0});
  return answer;
}

int count(const std::string& packet, int section) {  // 0 question, 1 answer, 2 authority, 3 additional
  return uint8_t(packet[4 + 2 * section]) << 8 | uint8_t(packet[5 + 2 * section]);
}
int rcode(const std::string& packet) { return packet[3] & 0xf; }
bool truncated(const std::string& packet) { return packet[2] & 0x02; }

TEST(DnsMessage, reads_a_question) {
  Question question = MUST(parse_question(question_packet()));
  EXPECT_EQ(question.id, 0x1234);
  EXPECT_EQ(question.name, "kube.local");
  EXPECT_EQ(question.name_asked, "KuBe.local");
  EXPECT_EQ(question.type, 1);
  EXPECT_EQ(question.klass, 1);
  EXPECT_TRUE(question.recursion_desired);
  EXPECT_FALSE(question.edns);
  EXPECT_EQ(question.udp_bytes_max, kUdpAnswerPlainMax);
}

TEST(DnsMessage, edns_says_how_much_fits_within_our_limits) {
  struct Row {
    int says;
    size_t want;
  };
  for (const Row& row : {Row{0, 512}, Row{512, 512}, Row{1000, 1000}, Row{4096, 1232}, Row{65535, 1232}}) {
    Question question = MUST(parse_question(with_edns(row.says)));
    EXPECT_TRUE(question.edns) << row.says;
    EXPECT_EQ(question.udp_bytes_max, row.want) << row.says;
  }
  EXPECT_EQ(MUST(parse_question(with_edns(1232, 3))).edns_version, 3);
}

TEST(DnsMessage, what_is_no_question_is_refused) {
  std::string none = question_packet().substr(0, 12), answer = question_packet(), loop = question_packet();
  none[5] = 0;
  answer[2] = char(0x81);
  loop.replace(12, 2, bytes({0xc0, 0x0c}));  // a name that points at itself
  EXPECT_EQ(parse_question("").error().code(), Code::bad_request);
  EXPECT_EQ(parse_question("short").error().code(), Code::bad_request);
  EXPECT_EQ(parse_question(none).error().code(), Code::bad_request);
  EXPECT_EQ(parse_question(loop).error().code(), Code::bad_request);
  EXPECT_EQ(parse_question(answer).error().code(), Code::cancelled);
  for (size_t cut = 0; cut < question_packet().size(); ++cut)
    EXPECT_FALSE(parse_question(question_packet().substr(0, cut))) << cut;
}

TEST(DnsMessage, an_answer_repeats_the_question_as_it_was_asked) {
  Question question = MUST(parse_question(with_edns(1232)));
  std::string packet = encode(question, addresses(2), zone(), question.udp_bytes_max);
  EXPECT_EQ(packet.substr(0, 2), bytes({0x12, 0x34}));
  EXPECT_EQ(uint8_t(packet[2]), 0x85) << "answer, authoritative, recursion desired";
  EXPECT_EQ(uint8_t(packet[3]), 0x80) << "recursion available, no error";
  EXPECT_NE(packet.find("KuBe"), std::string::npos);
  EXPECT_EQ(count(packet, 0), 1);
  EXPECT_EQ(count(packet, 1), 2);
  EXPECT_EQ(count(packet, 3), 1) << "EDNS is answered with EDNS";
  EXPECT_TRUE(answers(packet, question_packet()));
}

TEST(DnsMessage, addresses_take_turns) {
  Question question = MUST(parse_question(question_packet()));
  std::string first = encode(question, addresses(3), zone(), 512);
  question.id += 1;
  EXPECT_NE(first.substr(2), encode(question, addresses(3), zone(), 512).substr(2));
}

TEST(DnsMessage, negative_answers_carry_the_soa) {
  Question question = MUST(parse_question(question_packet()));
  ZoneAnswer nothing = addresses(0);
  std::string packet = encode(question, nothing, zone(), 512);
  EXPECT_EQ(rcode(packet), 0);
  EXPECT_EQ(count(packet, 2), 1);
  nothing.exists = false;
  packet = encode(question, nothing, zone(), 512);
  EXPECT_EQ(rcode(packet), 3);
  EXPECT_EQ(count(packet, 2), 1);
}

TEST(DnsMessage, what_does_not_fit_is_cut_and_says_so) {
  Question question = MUST(parse_question(question_packet()));
  std::string packet = encode(question, addresses(300), zone(), 512);
  EXPECT_LE(packet.size(), 512u);
  EXPECT_TRUE(truncated(packet));
  EXPECT_GT(count(packet, 1), 0);
  packet = encode(question, addresses(300), zone(), kDnsMessageMax);
  EXPECT_FALSE(truncated(packet));
  EXPECT_EQ(count(packet, 1), 300);
}

TEST(DnsMessage, errors_fit_what_was_asked) {
  std::string packet = encode_error(question_packet(), Rcode::format_error);
  EXPECT_EQ(packet.size(), kDnsHeaderBytes);
  EXPECT_EQ(rcode(packet), 1);
  EXPECT_EQ(packet.substr(0, 2), bytes({0x12, 0x34}));
  packet = encode_error(MUST(parse_question(with_edns(1232, 1))), Rcode::bad_version);
  EXPECT_EQ(rcode(packet), 0);
  EXPECT_EQ(count(packet, 3), 1) << "the extended code stands in the EDNS record";
  EXPECT_EQ(encode_error(std::string_view("short"), Rcode::format_error), "");
}

TEST(DnsMessage, a_reply_belongs_to_its_question_only) {
  std::string asked = encode_question(7, "example.com", 1), reply = asked;
  reply[2] = char(uint8_t(reply[2]) | 0x80);
  EXPECT_TRUE(answers(reply, asked));
  EXPECT_FALSE(answers(asked, asked)) << "a question is no reply";
  std::string other = reply;
  set_message_id(other, 8);
  EXPECT_FALSE(answers(other, asked));
  other = encode_question(7, "example.org", 1);
  other[2] = char(uint8_t(other[2]) | 0x80);
  EXPECT_FALSE(answers(other, asked));
  EXPECT_FALSE(answers(reply.substr(0, 14), asked));
}

TEST(DnsMessage, an_alias_stands_before_what_upstream_found) {
  Question question = MUST(parse_question(question_packet()));
  ZoneAnswer alias;
  alias.answer.push_back({"kube.local", RecordType::cname, {}, "example.com", 0});
  Question outside;
  outside.id = 9;
  outside.name_asked = "example.com";
  outside.type = outside.klass = 1;
  ZoneAnswer found = addresses(1);
  found.answer[0].name = "example.com";
  std::string upstream = encode(outside, found, zone(), 512);
  std::string packet = MUST(encode_behind_alias(question, alias, upstream, 512));
  EXPECT_EQ(count(packet, 1), 2);
  EXPECT_TRUE(answers(packet, question_packet()));
  EXPECT_FALSE(encode_behind_alias(question, alias, "nonsense", 512));
}

}  // namespace
}  // namespace coracle::network
