// SPDX-License-Identifier: Apache-2.0
// Which headers the proxy passes on, and how it rewrites URLs in them.
#include "daemon/api/proxy/headers.h"

#include <gtest/gtest.h>

namespace coracle::api {
namespace {

const ProxiedRequest kProxied{"/api/v1/namespaces/ns/pods/p:80/proxy", "/some/page", "10.0.0.1:80", "192.0.2.9"};

std::string passed_on(const std::string& head, bool upgrade = false, const ProxiedRequest& proxied = kProxied) {
  return request_head(MUST(parse_request_head(head + "\r\n")), proxied, upgrade);
}

TEST(ProxyRequest, carries_the_method_the_rest_of_the_path_and_the_query_as_they_were_sent) {
  std::string head = passed_on("GET /whatever?a=b&c=%20d&a=2 HTTP/1.1\r\nHost: api:6443\r\nAccept: x/y\r\nUser-Agent: me\r\n");
  EXPECT_EQ(head,
            "GET /some/page?a=b&c=%20d&a=2 HTTP/1.1\r\nHost: api:6443\r\nAccept: x/y\r\nUser-Agent: me\r\n"
            "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Uri: /api/v1/namespaces/ns/pods/p:80/proxy/some/page\r\nConnection: "
            "close\r\n\r\n");
}

TEST(ProxyRequest, keeps_percent_encoding) {
  ProxiedRequest proxied = kProxied;
  proxied.rest = "/a%2Fb/%C3%A4/x%20y/";
  EXPECT_TRUE(
      passed_on("GET /w HTTP/1.0\r\n", false, proxied).starts_with("GET /a%2Fb/%C3%A4/x%20y/ HTTP/1.1\r\nHost: 10.0.0.1:80\r\n"));
}

TEST(ProxyRequest, leaves_out_who_asks_and_what_is_of_the_connection) {
  std::string head = passed_on(
      "POST /w HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\nImpersonate-User: u\r\nimpersonate-group: g\r\n"
      "Impersonate-Uid: 1\r\nImpersonate-Extra-scopes: s\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
      "Keep-Alive: 5\r\nProxy-Authorization: p\r\nProxy-Connection: c\r\nTE: trailers, deflate\r\nTrailer: t\r\nUpgrade: h2c\r\n"
      "Expect: 100-continue\r\nContent-Length: 3\r\nCookie: kept\r\nContent-Encoding: gzip\r\n");
  EXPECT_EQ(head,
            "POST /some/page HTTP/1.1\r\nHost: h\r\nCookie: kept\r\nContent-Encoding: gzip\r\nTE: trailers\r\nX-Forwarded-For: "
            "192.0.2.9\r\n"
            "X-Forwarded-Uri: /api/v1/namespaces/ns/pods/p:80/proxy/some/page\r\nConnection: close\r\nContent-Length: 3\r\n\r\n");
}

TEST(ProxyRequest, adds_to_those_that_forwarded_it_and_says_the_uri_itself) {
  std::string head = passed_on(
      "GET /w HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Uri: /lie\r\nX-Forwarded-Host: outer\r\n"
      "X-Forwarded-Proto: https\r\nX-Forwarded-For: 198.51.100.2\r\n");
  EXPECT_NE(head.find("X-Forwarded-For: 198.51.100.1, 198.51.100.2, 192.0.2.9\r\n"), head.npos);
  EXPECT_EQ(head.find("/lie"), head.npos);
  EXPECT_NE(head.find("X-Forwarded-Host: outer\r\n"), head.npos);
  EXPECT_NE(head.find("X-Forwarded-Proto: https\r\n"), head.npos);
}

TEST(ProxyRequest, tells_where_a_body_ends) {
  EXPECT_NE(passed_on("PUT /w HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n").find("Transfer-Encoding: chunked\r\n"),
            std::string::npos);
  EXPECT_NE(passed_on("PATCH /w HTTP/1.1\r\nHost: h\r\n").find("Content-Length: 0\r\n"), std::string::npos);
  EXPECT_EQ(passed_on("DELETE /w HTTP/1.1\r\nHost: h\r\n").find("Content-Length"), std::string::npos);
}

TEST(ProxyRequest, asks_for_another_protocol_in_the_clients_words) {
  const std::string upgrade =
      "GET /w HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer x\r\n"
      "Sec-WebSocket-Protocol: chat, base64url.bearer.authorization.k8s.io.c2VjcmV0\r\nSec-WebSocket-Key: k\r\n";
  EXPECT_TRUE(asks_for_upgrade(MUST(parse_request_head(upgrade + "\r\n"))));
  EXPECT_FALSE(asks_for_upgrade(MUST(parse_request_head("GET /w HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n"))));
  EXPECT_EQ(passed_on(upgrade, true),
            "GET /some/page HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Key: k\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n");
}

TEST(ProxyRequest, paths_are_cleaned_but_for_their_last_slash) {
  struct Row {
    const char *path, *want;
  };
  for (const Row& row : {Row{"", "/"}, Row{"/", "/"}, Row{"//a///b", "/a/b"}, Row{"/a/./b/", "/a/b/"}, Row{"/a/../../b", "/b"},
                         Row{"/%2e%2E/a", "/a"}, Row{"/..", "/"}, Row{"/../", "/"}, Row{"/a%2f..%2fb", "/a%2f..%2fb"}})
    EXPECT_EQ(clean_path(row.path), row.want) << row.path;
}

TEST(ProxyAnswer, carries_what_is_not_of_the_connection_or_of_origins) {
  AnswerHead head = MUST(vet_answer_head(
      "HTTP/1.1 418 Teapot here\r\nServer: s\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n"
      "Keep-Alive: 1\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: GET\r\n"
      "Access-Control-Allow-Headers: x\r\nAccess-Control-Allow-Credentials: true\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_EQ(
      answer_head(head, Framing::length, true, std::nullopt, {{"Audit-ID", "1"}}),
      "HTTP/1.1 418 Teapot here\r\nAudit-ID: 1\r\nServer: s\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(answer_head(head, Framing::chunked, false, "/x", {}),
            "HTTP/1.1 418 Teapot here\r\nServer: s\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nLocation: /x\r\nTransfer-Encoding: "
            "chunked\r\nConnection: close\r\n\r\n");
}

TEST(ProxyAnswer, heads_are_read_strictly_but_for_their_line_ends) {
  AnswerHead head = MUST(vet_answer_head("HTTP/1.0 200\nContent-Length: 7\n\n"));
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.reason, "");
  EXPECT_EQ(head.content_length, 7u);
  EXPECT_TRUE(MUST(vet_answer_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 7\r\n\r\n")).chunked);
  for (const char* bad :
       {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "HTTP/1.1 099\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"})
    EXPECT_FALSE(vet_answer_head(bad)) << bad;
}

TEST(ProxyUrl, of_the_target_leads_through_the_proxy) {
  struct Row {
    const char *url, *want;
  };
  const std::string prefix = kProxied.prefix;
  for (const Row& row :
       {Row{"/x", "P/x"}, Row{"/x/y/?q=1#f", "P/x/y/?q=1#f"}, Row{"/", "P/"}, Row{"/a/../b", "P/b"},
        Row{"http://10.0.0.1:80/x", "P/x"}, Row{"//10.0.0.1:80/x", "P/x"}, Row{"https://10.0.0.1:80/x?y", "P/x?y"},
        Row{"https://api:6443/x", "https://api:6443P/x"}, Row{"P/x", "P/x"}, Row{"https://api:6443P/x", "https://api:6443P/x"}}) {
    std::string url = row.url, want = row.want;
    for (std::string* text : {&url, &want})
      if (size_t at = text->find('P'); at != text->npos) text->replace(at, 1, prefix);
    EXPECT_EQ(rewrite_url(url, kProxied, "api:6443"), want) << row.url;
  }
}

TEST(ProxyUrl, of_others_and_relative_ones_stay) {
  for (const char* url :
       {"", "x", "x/y", "?q", "#f", "./x", "../x", "mailto:a@b", "javascript:f(1/2)", "data:text/plain,/x", "http://elsewhere/x",
        "//elsewhere/x", "http://10.0.0.1/x", "http://10.0.0.1:81/x", "http://user@10.0.0.1:80/x", "http://10.0.0.1:80"})
    EXPECT_EQ(rewrite_url(url, kProxied, "api:6443"), url);
  for (const char* url : {"a:b:c/d", "%zz", "/%zz", "/a\nb", "1a:/b"}) {
    auto rewritten = rewrite_url(url, kProxied, "api:6443");
    EXPECT_TRUE(!rewritten || *rewritten == url) << url;
  }
  EXPECT_FALSE(rewrite_url("/%zz", kProxied, "api:6443"));
  EXPECT_FALSE(rewrite_url("1a:/b", kProxied, "api:6443"));
}

}  // namespace
}  // namespace coracle::api
