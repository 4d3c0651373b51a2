// SPDX-License-Identifier: Apache-2.0
// HTTP heads: which ones are accepted or refused, and how the end of the body is determined.
#include "daemon/api/head.h"

#include <gtest/gtest.h>

#include "daemon/api/negotiate.h"
#include "store/object/status.h"
#include "tests/processor_time.h"

namespace coracle::api {
namespace {

// Adds a Host line after the first line, as HTTP/1.1 requires.
Result<Head> vet(std::string lines) {
  size_t first = lines.find("\r\n") + 2;
  return parse_request_head(lines.insert(first, "Host: h\r\n") + "\r\n");
}

TEST(Head, reads_target_query_and_headers) {
  Head head = MUST(vet("GET /api/v1/pods?watch=1&labelSelector=a%3Db%2Cc&x=a+b HTTP/1.1\r\nAccept: one\r\naccept: two\r\n"));
  EXPECT_EQ(head.path, "/api/v1/pods");
  EXPECT_EQ(head.query.get("labelSelector"), "a=b,c");
  EXPECT_EQ(head.query.get("x"), "a b");
  EXPECT_TRUE(head.query.flag("watch"));
  EXPECT_EQ(head.headers.all("ACCEPT").size(), 2u);
  EXPECT_TRUE(head.keep_alive);
}

TEST(Head, ends_lines_without_a_carriage_return_too) {
  Head head = MUST(parse_request_head("POST / HTTP/1.1\nHost: h\r\nA: b\nContent-Length: 3\n\n"));
  EXPECT_EQ(head.headers.get("A"), "b");
  EXPECT_EQ(head.content_length, 3u);
  for (auto [text, end] :
       {std::pair("a\n\nb", 3u), std::pair("a\r\n\r\nb", 5u), std::pair("a\r\n\nb", 4u), std::pair("a\n\r\nb", 4u)}) {
    EXPECT_EQ(end_of_head(text), end) << text;
    EXPECT_EQ(end_of_head(text, 1), end) << text;
  }
  for (const char* text : {"", "\n", "a\r\r\n", "a\n\r", "a\nb\n"}) EXPECT_EQ(end_of_head(text), std::string_view::npos) << text;
  EXPECT_FALSE(parse_request_head("GET / HTTP/1.1\nHost: h\n\nX: y\n\n")) << "nothing may follow";
}

TEST(Head, keeps_question_marks_in_a_query) {
  Head head = MUST(vet("GET /x?command=ls&command=a?b HTTP/1.1\r\n"));
  EXPECT_EQ(head.query.all("command").size(), 2u);
  EXPECT_EQ(head.query.all("command")[1], "a?b");
}

TEST(Head, refuses_what_is_malformed_or_ambiguous) {
  struct Row {
    const char* name;
    std::string head;
    Code want;
  };
  const std::string long_line(kHeadBytesMax + 1, 'a');
  std::string many;
  for (size_t i = 0; i <= kHeadersMax; i++) many += "A: b\r\n";
  for (const Row& row : std::vector<Row>{
           {"no request line", "\r\n", Code::bad_request},
           {"two words", "GET /\r\n", Code::bad_request},
           {"four words", "GET / x HTTP/1.1\r\n", Code::bad_request},
           {"old version", "GET / HTTP/0.9\r\n", Code::unsupported},
           {"next version", "PRI * HTTP/2.0\r\n", Code::method_not_allowed},
           {"no version", "GET / HTTP/1\r\n", Code::bad_request},
           {"unknown method", "BREW / HTTP/1.1\r\n", Code::method_not_allowed},
           {"absolute target without a host", "GET http:///api HTTP/1.1\r\n", Code::bad_request},
           {"other scheme", "GET ftp://x/ HTTP/1.1\r\n", Code::bad_request},
           {"star", "GET * HTTP/1.1\r\n", Code::bad_request},
           {"authority", "GET x:443 HTTP/1.1\r\n", Code::bad_request},
           {"two hosts", "GET / HTTP/1.1\r\nHost: i\r\n", Code::bad_request},
           {"chunks in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", Code::bad_request},
           {"other expectation", "POST / HTTP/1.1\r\nExpect: x\r\nContent-Length: 1\r\n", Code::unsupported},
           {"control in target", "GET /\x01 HTTP/1.1\r\n", Code::bad_request},
           {"high byte in target", "GET /\xff HTTP/1.1\r\n", Code::bad_request},
           {"long target", "GET /" + long_line + " HTTP/1.1\r\n", Code::too_large},
           {"broken query", "GET /?a=%zz HTTP/1.1\r\n", Code::bad_request},
           {"header without colon", "GET / HTTP/1.1\r\nHost\r\n", Code::bad_request},
           {"space before colon", "GET / HTTP/1.1\r\nHost : x\r\n", Code::bad_request},
           {"folded header", "GET / HTTP/1.1\r\nA: b\r\n c\r\n", Code::bad_request},
           {"bare CR", "GET / HTTP/1.1\r\nA: b\rc\r\n", Code::bad_request},
           {"CR before the end", "GET / HTTP/1.1\r\nA: b\r\r\n", Code::bad_request},
           {"bare LF and chunks", "POST / HTTP/1.1\nContent-Length: 3\nTransfer-Encoding: chunked\r\n", Code::bad_request},
           {"NUL", std::string("GET / HTTP/1.1\r\nA: b") + '\0' + "\r\n", Code::bad_request},
           {"many headers", "GET / HTTP/1.1\r\n" + many, Code::too_large},
           {"length twice", "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n", Code::bad_request},
           {"length with sign", "POST / HTTP/1.1\r\nContent-Length: +3\r\n", Code::bad_request},
           {"length list", "POST / HTTP/1.1\r\nContent-Length: 3, 3\r\n", Code::bad_request},
           {"length and chunks", "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n", Code::bad_request},
           {"other coding", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n", Code::unsupported},
       }) {
    auto got = vet(row.head);
    EXPECT_FALSE(got) << row.name;
    if (!got) {
      EXPECT_EQ(code_name(got.error().code()), code_name(row.want)) << row.name;
    }
  }
  EXPECT_FALSE(parse_request_head("GET / HTTP/1.1\r\n"));
  EXPECT_EQ(parse_request_head(std::string(kHeadBytesMax, 'a') + "\r\n\r\n").error().code(), Code::too_large);
}

// Source: RFC 9110 sections 15.5.18, 15.6.2, 15.6.6; the statuses are those of Go's net/http
TEST(Head, has_a_status_of_its_own_for_what_is_not_spoken) {
  for (auto [head, status] : {std::pair("GET / HTTP/2.0\r\n", 505), std::pair("GET / HTTP/0.9\r\n", 505),
                              std::pair("POST / HTTP/1.1\r\nExpect: x\r\nContent-Length: 1\r\n", 417),
                              std::pair("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n", 501)}) {
    auto got = vet(head);
    ASSERT_FALSE(got) << head;
    EXPECT_EQ(http_status(got.error()), status) << head;
    EXPECT_EQ(get_int(to_status(got.error()), "code"), status);
    EXPECT_EQ(find(to_status(got.error()), "reason"), nullptr);
  }
  EXPECT_TRUE(MUST(vet("GET / HTTP/1.2\r\n")).supports_chunked);
}

TEST(Head, demands_a_host_of_http_1_1_alone) {
  EXPECT_EQ(parse_request_head("GET / HTTP/1.1\r\n\r\n").error().text(), "missing required Host header");
  EXPECT_TRUE(parse_request_head("GET / HTTP/1.0\r\n\r\n"));
}

TEST(Head, reads_targets_as_proxies_send_them) {
  for (auto [target, path, query] :
       {std::tuple("http://x:6443/api/v1/pods?limit=1", "/api/v1/pods", "1"), std::tuple("HTTPS://x/api", "/api", ""),
        std::tuple("http://x", "/", ""), std::tuple("http://x?limit=2", "/", "2"), std::tuple("/a//b", "/a//b", "")}) {
    Head head = MUST(vet("GET " + std::string(target) + " HTTP/1.1\r\n"));
    EXPECT_EQ(head.path, path) << target;
    EXPECT_EQ(head.query.get("limit"), query) << target;
  }
  EXPECT_EQ(MUST(vet("OPTIONS * HTTP/1.1\r\n")).path, "*");
}

TEST(Head, takes_a_mebibyte_as_go_does) {
  std::string script(500 << 10, 'a'), selector(400 << 10, 'b');
  Head head = MUST(vet("GET /x?command=" + script + " HTTP/1.1\r\nX-More: " + selector + "\r\n"));
  EXPECT_EQ(head.query.get("command").size(), script.size());
  EXPECT_EQ(head.headers.get("x-more").size(), selector.size());
}

TEST(Head, knows_whether_the_connection_stays) {
  for (auto [head, stays] : {std::pair("GET / HTTP/1.1\r\n", true), std::pair("GET / HTTP/1.0\r\n", false),
                             std::pair("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", true),
                             std::pair("GET / HTTP/1.1\r\nconnection: x, CLOSE\r\n", false),
                             std::pair("GET / HTTP/1.1\r\nConnection: Upgrade\r\nConnection: close\r\n", false),
                             std::pair("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n", false)})
    EXPECT_EQ(MUST(vet(head)).keep_alive, stays) << head;
}

TEST(Head, knows_who_waits_to_be_told_to_go_on) {
  EXPECT_TRUE(MUST(vet("POST / HTTP/1.1\r\nexpect: 100-Continue\r\nContent-Length: 3\r\n")).awaits_continue);
  EXPECT_FALSE(MUST(vet("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 0\r\n")).awaits_continue);
  EXPECT_FALSE(MUST(vet("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n")).awaits_continue);
}

TEST(Head, takes_a_length_that_is_said_twice_alike) {
  EXPECT_EQ(MUST(vet("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n")).content_length, 3u);
}

TEST(Head, has_an_end_to_the_parameters_of_a_query) {
  std::string many;
  for (size_t i = 0; i < kQueryPairsMax; i++) many += "&a";
  EXPECT_EQ(MUST(vet("GET /?" + many + " HTTP/1.1\r\n")).query.all("a").size(), kQueryPairsMax);
  EXPECT_EQ(vet("GET /?" + many + "&a HTTP/1.1\r\n").error().code(), Code::too_large);
}

// Any client can send a head of this size, so parsing must be linear.
TEST(Head, of_the_largest_size_costs_little) {
  auto began = processor_time_of_thread();
  for (char filler : {' ', ',', '&', '=', '/', '%', ';', 'a'}) {
    std::string fill(kHeadBytesMax - 200, filler);
    (void)vet("GET /" + fill + " HTTP/1.1\r\n");
    (void)vet("GET /?x=" + fill + " HTTP/1.1\r\n");
    auto head = vet("GET / HTTP/1.1\r\nAccept: " + fill + "\r\nConnection: x\r\n");
    if (head) (void)negotiate(*head, Offer::object);
    (void)vet("GET / HTTP/1.1\r\nConnection: " + fill + "\r\n");
  }
  EXPECT_LT(processor_time_of_thread() - began, std::chrono::seconds(10)) << "unoptimized, and with sanitizers";
}

TEST(Head, finds_tokens_in_lists) {
  EXPECT_TRUE(header_has_token("keep-alive, Upgrade", "upgrade"));
  EXPECT_FALSE(header_has_token("keep-alive, Upgraded", "upgrade"));
}

TEST(RequestHead, a_control_character_is_found_wherever_it_is_in_a_value) {
  auto parsed = [](const std::string& value) {
    return bool(parse_request_head("GET / HTTP/1.1\r\nHost: x\r\nX-Long: a" + value + "z\r\n\r\n"));
  };
  for (size_t size = 1; size < 20; ++size)
    for (size_t at = 0; at < size; ++at)
      for (int byte = 0; byte < 256; ++byte) {
        std::string value(size, 'v');
        value[at] = char(byte);
        const bool is_sound = byte == '\t' || (byte >= 0x20 && byte != 0x7f);  // Source: RFC 9110 section 5.5
        if (byte == '\n') continue;  // ends the line
        ASSERT_EQ(parsed(value), is_sound) << size << ", byte " << byte << " at " << at;
      }
}

}  // namespace
}  // namespace coracle::api
