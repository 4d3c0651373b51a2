// SPDX-License-Identifier: Apache-2.0
// The rules of proxy: which requests pass, where they go, and what is refused because two servers could read it in two ways.
#include "ctl/proxy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

ProxyRules usual_rules() {
  ProxyRules rules;
  rules.accept_paths = MUST(Patterns::parse("^.*"));
  rules.reject_paths = MUST(Patterns::parse("^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach"));
  rules.accept_hosts = MUST(Patterns::parse(R"(^localhost$,^127\.0\.0\.1$,^\[::1\]$)"));
  rules.reject_methods = MUST(Patterns::parse("^$"));
  return rules;
}

ProxyRequest request_for(const std::string& target, const std::string& host = "localhost:8001",
                         const std::string& method = "GET") {
  return MUST(parse_proxy_request(method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n"));
}

std::string routed(const ProxyRules& rules, const std::string& target, const std::string& host = "localhost:8001",
                   const std::string& method = "GET") {
  Route found = route(request_for(target, host, method), rules);
  switch (found.to) {
    case Route::To::api: return "api " + found.target;
    case Route::To::file: return "file " + found.target;
    case Route::To::redirect: return "to " + found.target;
    case Route::To::forbidden: return "forbidden";
    case Route::To::not_found: return "none";
  }
  return "";
}

TEST(Proxy, filters_as_kubectl_does) {
  ProxyRules rules = usual_rules();
  EXPECT_EQ(routed(rules, "/api/v1/pods?watch=true"), "api /api/v1/pods?watch=true");
  EXPECT_EQ(routed(rules, "/api/v1/pods", "127.0.0.1:8001"), "api /api/v1/pods");
  EXPECT_EQ(routed(rules, "/api/v1/pods", "127.0.0.1"), "api /api/v1/pods");
  EXPECT_EQ(routed(rules, "/api/v1/pods", "[::1]"), "api /api/v1/pods");
  EXPECT_EQ(routed(rules, "/api/v1/pods", "127a0.0.1:8001"), "forbidden");
  EXPECT_EQ(routed(rules, "/api/v1/pods", "evil.example:8001"), "forbidden");
  EXPECT_EQ(routed(rules, "/api/v1/pods", "localhost.evil.example"), "forbidden");
  EXPECT_EQ(routed(rules, "/api/v1/namespaces/d/pods/web/exec?command=sh"), "forbidden");
  EXPECT_EQ(routed(rules, "/api/v1/namespaces/d/pods/web/%65xec"), "forbidden");
  EXPECT_EQ(routed(rules, "/api/v1/namespaces/d/pods/web%2Fexec"), "forbidden");
  EXPECT_EQ(routed(rules, "/api/v1/namespaces/d/pods/web/log"), "api /api/v1/namespaces/d/pods/web/log");
  rules.reject_methods = MUST(Patterns::parse("POST,PUT,PATCH"));
  EXPECT_EQ(routed(rules, "/api/v1/pods", "localhost", "POST"), "forbidden");
  EXPECT_EQ(routed(rules, "/api/v1/pods", "localhost", "DELETE"), "api /api/v1/pods");
  rules.filters = false;
  EXPECT_EQ(routed(rules, "/api/v1/namespaces/d/pods/web/exec", "evil.example"), "api /api/v1/namespaces/d/pods/web/exec");
}

TEST(Proxy, has_prefixes_for_the_api_and_for_files) {
  ProxyRules rules = usual_rules();
  rules.serves_files = true;
  EXPECT_EQ(routed(rules, "/static/a/b.txt"), "file /a/b.txt");
  EXPECT_EQ(routed(rules, "/static/", "evil.example"), "file /");  // the filter protects the API only
  EXPECT_EQ(routed(rules, "/static"), "to /static/");
  EXPECT_EQ(routed(rules, "/version"), "api /version");
  rules.api_prefix = "/custom/";
  EXPECT_EQ(routed(rules, "/custom/api/v1/pods?limit=1"), "api /api/v1/pods?limit=1");
  EXPECT_EQ(routed(rules, "/custom/api/v1/namespaces/d/pods/web/exec"), "forbidden");
  EXPECT_EQ(routed(rules, "/custom"), "to /custom/");
  EXPECT_EQ(routed(rules, "/api/v1/pods"), "none");
  EXPECT_EQ(routed(rules, "/%63ustom/version"), "api /version");
  rules.api_prefix = "/api/";  // is not taken away
  EXPECT_EQ(routed(rules, "/api/v1/pods"), "api /api/v1/pods");
}

TEST(Proxy, cleans_paths_before_it_looks_at_them) {
  ProxyRules rules = usual_rules();
  rules.serves_files = true;
  EXPECT_EQ(routed(rules, "/static/../api/v1//pods?x=1"), "to /api/v1/pods?x=1");
  EXPECT_EQ(routed(rules, "/api/./v1"), "to /api/v1");
  EXPECT_EQ(routed(rules, "/static/%2e%2e/%2e%2e/etc/passwd"), "to /etc/passwd");
  EXPECT_EQ(routed(rules, "/api/v1/pods/%00/exec"), "none");
}

TEST(Proxy, refuses_requests_that_are_not_clear) {
  for (std::string head : {
           "GET / HTTP/1.1\r\n",  // no host
           "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\nName : x\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n",
           "GET / HTTP/1.1\r\nHost: a\nX: b\r\n",
           "GET / HTTP/2\r\nHost: a\r\n",
           "GET  / HTTP/1.1\r\nHost: a\r\n",
           "GET * HTTP/1.1\r\nHost: a\r\n",
           "GET /%zz HTTP/1.1\r\nHost: a\r\n",
           "\r\n",
       })
    EXPECT_FALSE(parse_proxy_request(head)) << head;
  ProxyRequest absolute = MUST(parse_proxy_request("GET http://evil.example/api HTTP/1.1\r\nHost: localhost\r\n"));
  EXPECT_EQ(absolute.host, "evil.example");
  EXPECT_EQ(absolute.path, "/api");
}

TEST(Proxy, knows_where_a_body_ends) {
  BodyFraming fixed = BodyFraming::of_length(5);
  EXPECT_EQ(MUST(fixed.take("abc")), 3u);
  EXPECT_FALSE(fixed.ended());
  EXPECT_EQ(MUST(fixed.take("deGET / HTTP/1.1")), 2u);
  EXPECT_TRUE(fixed.ended());
  EXPECT_EQ(MUST(fixed.take("more")), 0u);
  const std::string chunks = "4;x=y\r\nabcd\r\n0\r\nTrailer: 1\r\n\r\nGET /";
  for (size_t step : {1, 2, 3, 100}) {
    BodyFraming chunked = BodyFraming::chunked();
    size_t used = 0;
    for (size_t at = 0; at < chunks.size() && !chunked.ended(); at += step)
      used += MUST(chunked.take(std::string_view(chunks).substr(at, step)));
    EXPECT_TRUE(chunked.ended());
    EXPECT_EQ(used, chunks.size() - 5) << step;
  }
  for (const char* wrong : {"x\r\n", "4\nabcd", "4\r\nabcdX", "-1\r\n", "ffffffffffffffff\r\n"}) {
    BodyFraming chunked = BodyFraming::chunked();
    auto taken = chunked.take(wrong);
    if (taken) taken = chunked.take("\r\nY\r\n");
    EXPECT_FALSE(taken) << wrong;
  }
}

TEST(Proxy, writes_requests_with_our_identity) {
  std::string head =
      head_for_server(MUST(parse_proxy_request(
                          "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nAccept: a\r\n")),
                      "/api", "server:6443", {"Authorization: Bearer t"}, "127.0.0.1");
  EXPECT_EQ(head,
            "GET /api HTTP/1.1\r\nHost: server:6443\r\nAccept: a\r\nAuthorization: Bearer t\r\nX-Forwarded-For: 127.0.0.1\r\n"
            "Connection: close\r\n\r\n");
  head = head_for_server(
      MUST(parse_proxy_request("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                               "Authorization: Bearer own\r\n")),
      "/x", "server", {"Authorization: Bearer t"}, "127.0.0.1");
  EXPECT_EQ(head,
            "GET /x HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer own\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

TEST(Proxy, ends_the_connection_behind_an_answer) {
  AnswerHead answer =
      MUST(head_for_client("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n"
                           "Access-Control-Allow-Origin: *\r\n"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.text, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
  answer = MUST(head_for_client("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"));
  EXPECT_EQ(answer.text, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(MUST(head_for_client("HTTP/1.1 100 Continue\r\n")).text, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_FALSE(head_for_client("SSH-2.0-x\r\n"));
}

TEST(Proxy, understands_hosts_and_expressions) {
  EXPECT_EQ(host_without_port("localhost:80"), "localhost");
  EXPECT_EQ(host_without_port("localhost"), "localhost");
  EXPECT_EQ(host_without_port("[::1]:80"), "::1");
  EXPECT_EQ(host_without_port("[::1]"), "[::1]");
  EXPECT_EQ(host_without_port("::1"), "::1");
  EXPECT_FALSE(MUST(Patterns::parse("")).match("x"));
  EXPECT_TRUE(MUST(Patterns::parse("a,")).match("x"));  // an empty expression
  EXPECT_TRUE(MUST(Patterns::parse("^/v\\d+$")).match("/v12"));
  EXPECT_TRUE(MUST(Patterns::parse("(?i)^get$")).match("GET"));
  EXPECT_TRUE(MUST(Patterns::parse("^(?:a|b)$")).match("b"));
  EXPECT_FALSE(Patterns::parse("a,(b"));
}

TEST(Proxy, serves_files) {
  std::filesystem::path directory = std::filesystem::temp_directory_path() / ("coracle-proxy-" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory / "sub");
  std::filesystem::create_directories(directory / "list");
  std::ofstream(directory / "a.txt") << "0123456789";
  std::ofstream(directory / "sub" / "index.html") << "<p>";
  std::ofstream(directory / "list" / "<x>") << "";
  auto answer = [&](const std::string& path, const std::string& headers = "", const std::string& method = "GET") {
    return file_answer(MUST(parse_proxy_request(method + " /static" + path + " HTTP/1.1\r\nHost: a\r\n" + headers)), directory,
                       path);
  };
  FileAnswer found = answer("/a.txt");
  EXPECT_EQ(found.size, 10u);
  EXPECT_NE(found.head.find("Content-Type: text/plain; charset=utf-8\r\n"), found.head.npos);
  found = answer("/a.txt", "Range: bytes=2-4\r\n");
  EXPECT_EQ(found.from, 2u);
  EXPECT_EQ(found.size, 3u);
  EXPECT_NE(found.head.find("Content-Range: bytes 2-4/10\r\n"), found.head.npos);
  EXPECT_EQ(answer("/a.txt", "Range: bytes=-3\r\n").from, 7u);
  EXPECT_TRUE(answer("/a.txt", "Range: bytes=20-\r\n").head.starts_with("HTTP/1.1 416 "));
  EXPECT_TRUE(answer("/none").head.starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(answer("/a.txt", "", "POST").head.starts_with("HTTP/1.1 405 "));
  EXPECT_NE(answer("/sub").head.find("Location: sub/\r\n"), std::string::npos);
  EXPECT_TRUE(answer("/sub/").path.ends_with("/sub/index.html"));
  EXPECT_NE(answer("/sub/index.html").head.find("Location: ./\r\n"), std::string::npos);
  EXPECT_NE(answer("/a.txt/").head.find("Location: ../a.txt\r\n"), std::string::npos);
  EXPECT_NE(answer("/list/").body.find("<a href=\"%3Cx%3E\">&lt;x&gt;</a>\n"), std::string::npos);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace coracle::ctl
