// SPDX-License-Identifier: Apache-2.0
// Heads: what is let in, what is refused, and that cpp-httplib sees nothing of what it chokes on.
#include "daemon/api/head.h"

#include <gtest/gtest.h>

namespace coracle::api {
namespace {

Result<Head> vet(const std::string& lines) { return vet_head(lines + "\r\n"); }

TEST(Head, reads_target_query_and_headers) {
  Head head =
      MUST(vet("GET /api/v1/pods?watch=1&labelSelector=a%3Db%2Cc&x=a+b HTTP/1.1\r\nHost: h\r\nAccept: one\r\naccept: two\r\n"));
  EXPECT_EQ(head.path, "/api/v1/pods");
  EXPECT_EQ(head.query.get("labelSelector"), "a=b,c");
  EXPECT_EQ(head.query.get("x"), "a b");
  EXPECT_TRUE(head.query.flag("watch"));
  EXPECT_EQ(head.headers.all("ACCEPT").size(), 2u);
  EXPECT_TRUE(head.keep_alive);
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
  const std::string long_line(kTargetBytesMax + 1, 'a');
  std::string many;
  for (size_t i = 0; i <= kHeadersMax; i++) many += "A: b\r\n";
  for (const Row& row : std::vector<Row>{
           {"no request line", "\r\n", Code::bad_request},
           {"two words", "GET /\r\n", Code::bad_request},
           {"four words", "GET / x HTTP/1.1\r\n", Code::bad_request},
           {"old version", "GET / HTTP/0.9\r\n", Code::unsupported},
           {"next version", "PRI * HTTP/2.0\r\n", Code::method_not_allowed},
           {"unknown method", "BREW / HTTP/1.1\r\n", Code::method_not_allowed},
           {"absolute target", "GET http://x/ HTTP/1.1\r\n", Code::bad_request},
           {"control in target", "GET /\x01 HTTP/1.1\r\n", Code::bad_request},
           {"high byte in target", "GET /\xff HTTP/1.1\r\n", Code::bad_request},
           {"long target", "GET /" + long_line + " HTTP/1.1\r\n", Code::too_large},
           {"broken query", "GET /?a=%zz HTTP/1.1\r\n", Code::bad_request},
           {"header without colon", "GET / HTTP/1.1\r\nHost\r\n", Code::bad_request},
           {"space before colon", "GET / HTTP/1.1\r\nHost : x\r\n", Code::bad_request},
           {"folded header", "GET / HTTP/1.1\r\nA: b\r\n c\r\n", Code::bad_request},
           {"bare CR", "GET / HTTP/1.1\r\nA: b\rc\r\n", Code::bad_request},
           {"bare LF", "GET / HTTP/1.1\r\nA: b\nContent-Length: 3\r\n", Code::bad_request},
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
  EXPECT_FALSE(vet_head("GET / HTTP/1.1\r\n"));
  EXPECT_EQ(vet_head(std::string(kHeadBytesMax, 'a') + "\r\n\r\n").error().code(), Code::too_large);
}

TEST(Head, shows_cpp_httplib_nothing_that_it_matches_with_regular_expressions) {
  std::string ranges = "bytes=0-1";
  for (int i = 0; i < 700; i++) ranges += ",0-1";
  Head head = MUST(vet("POST /" + std::string(8000, 'a') + "?x=y HTTP/1.1\r\nRange: " + ranges +
                       "\r\nContent-Type: multipart/form-data; boundary=" + std::string(4000, 'b') +
                       "\r\nAccept-Encoding: gzip\r\nContent-Length: 2\r\n"));
  EXPECT_EQ(tame_head(head), "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n");
}

TEST(Head, supplies_a_length_where_a_client_left_it_out) {
  EXPECT_EQ(tame_head(MUST(vet("POST /x HTTP/1.1\r\n"))), "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(tame_head(MUST(vet("DELETE /x HTTP/1.1\r\n"))), "DELETE / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(tame_head(MUST(vet("GET /x HTTP/1.0\r\n"))), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
}

TEST(Head, has_a_body_read_that_cpp_httplib_does_not_expect) {
  for (const char* method : {"GET", "HEAD", "OPTIONS", "DELETE"}) {
    std::string line = std::string(method) + " /x HTTP/1.1\r\n";
    EXPECT_EQ(tame_head(MUST(vet(line + "Content-Length: 2\r\n"))), "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(tame_head(MUST(vet(line + "Transfer-Encoding: chunked\r\n"))),
              "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
}

TEST(Head, finds_tokens_in_lists) {
  EXPECT_TRUE(names_token("keep-alive, Upgrade", "upgrade"));
  EXPECT_FALSE(names_token("keep-alive, Upgraded", "upgrade"));
}

}  // namespace
}  // namespace coracle::api
