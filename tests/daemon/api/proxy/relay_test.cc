// SPDX-License-Identifier: Apache-2.0
// One exchange relayed to a real server: bodies in both directions, links, upgrades, and a disconnect of either side at each
// point.
#include "daemon/api/proxy/relay.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <sys/resource.h>

#include "daemon/api/http_server.h"
#include "daemon/api/recode.h"
#include "runtime/base/guarded.h"
#include "store/object/status.h"
#include "tests/closed_port.h"
#include "tests/daemon/api/proxy/backend.h"
#include "tests/daemon/api/raw_client.h"

namespace coracle::api {
namespace {

using std::chrono::milliseconds;

TlsSettings& serving() {
  static TlsSettings tls;
  static bool made = [] {
    KeyPair ca = MUST(make_ca("test"));
    CertificateRequest request;
    request.common_name = "localhost", request.dns_names = {"localhost"}, request.server = true;
    request.not_after = system_clock().now() + std::chrono::hours(1);
    KeyPair pair = MUST(issue(ca, request));
    MUST(tls.set(pair.certificate, pair.key, ca.certificate));
    return true;
  }();
  (void)made;
  return tls;
}

void refuse(Exchange& exchange, const Error& why) {
  exchange.answer.status = http_status(why);
  exchange.answer.body = why.text();
}

// An HTTP server that relays all requests "/p/…" to one target.
class Proxy {
 public:
  explicit Proxy(uint16_t to, bool secure = false) : target_{{"127.0.0.1", to}, secure, "127.0.0.1:" + std::to_string(to)} {
    http_server_ = std::make_unique<HttpServer>(
        serving(), [this](Exchange& exchange) { handle(exchange); }, [](const Head&) { return true; }, refuse);
    port_ = MUST(http_server_->start({{"127.0.0.1", 0}})).front().port;
  }
  uint16_t port() const { return port_; }
  // The outcome of the last exchange: "" or the error.
  std::string outcome() {
    return ended_.wait_until(
        {}, std::chrono::steady_clock::now() + std::chrono::seconds(60), [](const auto& e) { return e.has_value(); },
        [](const auto& e) { return e.value_or("it has not ended"); });
  }
  HttpServer& front() { return *http_server_; }

 private:
  void handle(Exchange& exchange) {
    ProxiedRequest proxied{"/p", exchange.head.path.substr(2), target_.host, exchange.connection.peer().address};
    auto done = relay(exchange, target_, proxied, {{"Audit-ID", "7"}});
    if (!done && !exchange.taken()) refuse(exchange, done.error());
    ended_.with([&](auto& ended) { ended = done ? "" : done.error().text(); });
    ended_.notify();
  }

  Target target_;
  uint16_t port_ = 0;
  Guarded<std::optional<std::string>> ended_;
  std::unique_ptr<HttpServer> http_server_;  // last member: its handlers use those above
};

// The backend's answer to the next request. The backend's thread reads it while the test runs.
class NextAnswer {
 public:
  void operator=(std::string text) {
    text_.with([&](std::string& mine) { mine = std::move(text); });
  }
  std::string get() const {
    return text_.with([](const std::string& text) { return text; });
  }

 private:
  Guarded<std::string> text_;
};

struct Both {  // a scripted backend and a client of the proxy
  explicit Both(Backend::Script script) : backend(std::move(script)), proxy(backend.port()), client(proxy.port()) {}
  Backend backend;
  Proxy proxy;
  RawClient client;
};

TEST(Relay, hands_on_a_request_and_its_answer) {
  std::string seen;
  Both both([&](Peer& peer) {
    seen = peer.read_head();
    peer.write("HTTP/1.1 200 Fine\r\nX-Mine: 1\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nKeep-Alive: 1\r\n\r\nhello");
  });
  for (int i = 0; i < 3; i++) {  // on one connection
    RawAnswer answer = both.client.get("/p/a%20b/c?x=1&y=%2F", "Accept: text/plain\r\nAuthorization: Bearer secret\r\n");
    EXPECT_TRUE(answer.head.starts_with("HTTP/1.1 200 Fine\r\n")) << answer.head;
    EXPECT_EQ(answer.header("X-Mine"), "1");
    EXPECT_EQ(answer.header("Audit-ID"), "7");
    EXPECT_EQ(answer.header("Keep-Alive"), "");
    EXPECT_EQ(answer.header("Content-Length"), "5");
    EXPECT_EQ(answer.body, "hello");
    EXPECT_TRUE(
        seen.starts_with("GET /a%20b/c?x=1&y=%2F HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\nX-Forwarded-For: 127.0.0.1\r\n"
                         "X-Forwarded-Uri: /p/a%20b/c\r\n"))
        << seen;
    EXPECT_EQ(seen.find("secret"), seen.npos);
  }
  EXPECT_EQ(both.proxy.front().counts().connections, 1);
}

TEST(Relay, each_method_arrives_and_each_status_comes_back) {
  for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    Both both([&](Peer& peer) {
      std::string head = peer.read_head();
      peer.write("HTTP/1.1 418 Teapot\r\nContent-Length: " + std::to_string(head.find(' ')) + "\r\n\r\n" +
                 head.substr(0, head.find(' ')));
    });
    RawAnswer answer = both.client.ask(method, "/p/x");
    EXPECT_EQ(answer.status, 418);
    EXPECT_EQ(answer.body, method);
  }
}

TEST(Relay, answers_without_a_body_have_none) {
  struct Row {
    const char *method, *answer, *length;
    int status;
  };
  for (const Row& row : {Row{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", "500", 200},
                         Row{"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "", 200},
                         Row{"HEAD", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n", "", 200},
                         Row{"GET", "HTTP/1.1 204 No Content\r\n\r\n", "", 204},
                         Row{"DELETE", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "", 204},
                         Row{"GET", "HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 77\r\n\r\n", "77", 304}}) {
    Both both([&](Peer& peer) { peer.read_head(), peer.write(row.answer); });
    for (int i = 0; i < 2; i++) {  // the next request on the connection still works
      both.client.send(std::string(row.method) + " /p/x HTTP/1.1\r\nHost: x\r\n\r\n");
      RawAnswer answer = both.client.receive_head();
      EXPECT_EQ(answer.status, row.status) << row.answer;
      EXPECT_EQ(answer.header("Content-Length"), row.length) << row.answer;
      EXPECT_EQ(answer.header("Transfer-Encoding"), "") << row.answer;
    }
  }
}

TEST(Relay, bodies_are_framed_anew_however_they_ended) {
  struct Row {
    const char *answer, *length, *body;
  };
  for (const Row& row :
       {Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "", "abcde"},
        Row{"HTTP/1.1 200 OK\r\n\r\nuntil the end", "", "until the end"}, Row{"HTTP/1.0 200 OK\n\nold", "", "old"},
        Row{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "0", ""},
        Row{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
            "2\r\n\r\nok",
            "2", "ok"}}) {
    Both both([&](Peer& peer) { peer.read_head(), peer.write(row.answer); });
    RawAnswer answer = both.client.get("/p/x");
    EXPECT_EQ(answer.body, row.body) << row.answer;
    EXPECT_EQ(answer.header("Content-Length"), row.length);
    EXPECT_EQ(both.client.get("/p/x").body, row.body);
    both.client.send("GET /p/x HTTP/1.0\r\n\r\n");  // a client without chunked encoding
    RawAnswer old = both.client.receive_head();
    EXPECT_EQ(old.header("Transfer-Encoding"), "");
    EXPECT_EQ(old.header("Connection"), "close");
    EXPECT_EQ(both.client.receive_until("never"), row.body);
  }
}

TEST(Relay, trailers_follow_a_chunked_body) {
  Both both([](Peer& peer) {
    peer.read_head(),
        peer.write("HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 5\r\n\r\n");
  });
  both.client.send("GET /p/x HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(both.client.receive_head().header("Trailer"), "X-Sum");
  EXPECT_EQ(both.client.receive_until("\r\n\r\n"), "1\r\na\r\n0\r\nX-Sum: 5\r\n\r\n");
}

TEST(Relay, a_body_is_handed_on_with_its_length_or_in_chunks_and_as_it_was_packed) {
  std::string head, body;
  Both both([&](Peer& peer) {
    head = peer.read_head();
    body = head.find("chunked") != head.npos ? peer.read_chunked() : peer.read_exactly(5);
    peer.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  });
  EXPECT_EQ(both.client.ask("POST", "/p/x", "12345", "Content-Encoding: gzip\r\nExpect: 100-continue\r\n").status, 100);
  EXPECT_EQ(both.client.receive().status, 201);
  EXPECT_NE(head.find("Content-Length: 5\r\n"), head.npos);
  EXPECT_NE(head.find("Content-Encoding: gzip\r\n"), head.npos);
  EXPECT_EQ(head.find("Expect"), head.npos);
  EXPECT_EQ(body, "12345");  // the proxy does not decompress it
  both.client.send("DELETE /p/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
  EXPECT_EQ(both.client.receive().status, 201);
  EXPECT_TRUE(head.starts_with("DELETE /x HTTP/1.1\r\n"));
  EXPECT_EQ(body, "abcdefg");
}

TEST(Relay, a_body_and_its_answer_pass_at_once) {
  Both both([](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const std::string letter : {"a", "b", "c"}) {
      peer.read_until(letter + "\n");
      peer.write("3\r\n<" + letter + ">\r\n");
    }
    peer.write("0\r\n\r\n");
  });
  both.client.send("POST /p/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(both.client.receive_head().status, 200);  // before the body has begun
  for (const char* letter : {"a", "b", "c"}) {
    both.client.send("2\r\n" + std::string(letter) + "\n\r\n");
    EXPECT_EQ(both.client.receive_chunk(), "<" + std::string(letter) + ">");
  }
  both.client.send("0\r\n\r\n");
  EXPECT_EQ(both.client.receive_chunk(), "");
}

std::string digest_of(uint64_t size, const std::function<std::string()>& next) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  for (uint64_t done = 0; done < size;) {
    std::string piece = next();
    if (piece.empty()) break;
    EVP_DigestUpdate(context.get(), piece.data(), piece.size());
    done += piece.size();
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), digest, &length);
  return hex({reinterpret_cast<char*>(digest), length});
}

TEST(Relay, large_bodies_pass_both_ways_whole_and_in_little_memory) {
  constexpr size_t kPiece = 64 << 10, kPieces = 1600;  // 100 MiB
  auto piece_of = [](size_t i) { return std::string(kPiece, char('a' + i % 26)); };
  size_t made = 0;
  std::string sent = digest_of(kPiece * kPieces, [&] { return piece_of(made++); });
  Both both([&](Peer& peer) {
    peer.read_head();
    std::string received = digest_of(kPiece * kPieces, [&] { return peer.read_some(); });
    peer.write("HTTP/1.1 200 OK\r\nX-Digest: " + received + "\r\nContent-Length: " + std::to_string(kPiece * kPieces) +
               "\r\n\r\n");
    for (size_t i = 0; i < kPieces; i++) peer.write(piece_of(i));
  });
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  both.client.send("POST /p/x HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kPiece * kPieces) + "\r\n\r\n");
  for (size_t i = 0; i < kPieces; i++) both.client.send(piece_of(i));
  RawAnswer answer = both.client.receive_head();
  EXPECT_EQ(answer.header("X-Digest"), sent);
  EXPECT_EQ(digest_of(kPiece * kPieces, [&] { return both.client.receive_exactly(kPiece); }), sent);
  getrusage(RUSAGE_SELF, &after);
#ifndef __SANITIZE_ADDRESS__                                // which keeps for a while what was freed
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 24 << 10);  // KiB
#endif
  EXPECT_EQ(both.proxy.outcome(), "");
}

TEST(Relay, a_slow_client_gets_all_of_it) {
  std::string body(8 << 20, 'x');
  Both both([&](Peer& peer) {
    peer.read_head(), peer.write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  });
  both.client.send("GET /p/x HTTP/1.1\r\nHost: x\r\n\r\n");
  std::this_thread::sleep_for(milliseconds(300));
  RawAnswer answer = both.client.receive_head();
  EXPECT_EQ(both.client.receive_exactly(body.size() / 2).size(), body.size() / 2);
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(both.client.receive_exactly(body.size() / 2).size(), body.size() / 2);
}

TEST(Relay, links_and_places_lead_through_the_proxy) {
  NextAnswer answer;
  Both both([&](Peer& peer) { peer.read_head(), peer.write(answer.get()); });
  answer =
      "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 32\r\n\r\n<a href=\"/rewriteme\">test</a>...";
  RawAnswer page = both.client.get("/p/x");
  EXPECT_EQ(page.body, "<a href=\"/p/rewriteme\">test</a>...");
  EXPECT_EQ(page.header("Content-Length"), "");
  answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 17\r\n\r\n<a href=\"/stay\">.";
  EXPECT_EQ(both.client.get("/p/x").body, "<a href=\"/stay\">.");
  answer = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:" + std::to_string(both.backend.port()) +
           "/login?to=/\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<a href=\"/x\">";
  RawAnswer moved = both.client.get("/p/x");
  EXPECT_EQ(moved.status, 302);
  EXPECT_EQ(moved.header("Location"), "/p/login?to=/");
  EXPECT_EQ(moved.body, "<a href=\"/x\">");
  answer = "HTTP/1.1 302 Found\r\nLocation: /%zz\r\nContent-Length: 0\r\n\r\n";
  RawAnswer nowhere = both.client.get("/p/x");
  EXPECT_EQ(nowhere.status, 500);
  EXPECT_NE(nowhere.body.find("error trying to parse Location header: "), std::string::npos);
}

TEST(Relay, links_of_packed_pages_are_rewritten_too) {
  for (Coding coding : {Coding::gzip, Coding::deflate}) {
    Packer packer(coding);
    std::string packed;
    packer.feed("<p><a href='/x'>" + std::string(100'000, 'y'), packed);
    packer.end(packed);
    Both both([&](Peer& peer) {
      peer.read_head();
      peer.write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: " +
                 std::string(coding == Coding::gzip ? "gzip" : "deflate") +
                 "\r\nContent-Length: " + std::to_string(packed.size()) + "\r\n\r\n" + packed);
    });
    RawAnswer answer = both.client.get("/p/x");
    Unpacker unpacker(coding);
    std::string page;
    EXPECT_TRUE(unpacker.feed(answer.body, [&](std::string_view piece) { return page += piece, true; }));
    EXPECT_EQ(page.substr(0, 18), "<p><a href='/p/x'>");
    EXPECT_EQ(page.size(), 100'018u);
  }
}

TEST(Relay, who_does_not_answer_is_told_in_gos_words) {
  const ClosedPort closed;
  Proxy refused(closed.number());
  RawAnswer answer = RawClient(refused.port()).get("/p/x");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "error trying to reach service: dial tcp 127.0.0.1:" + closed.text() + ": connect: connection refused");
  struct Row {
    const char *answer, *why;
  };
  for (const Row& row :
       {Row{"", "EOF"}, Row{"HTTP/1.1 200 OK\r\nCont", "unexpected EOF"},
        Row{"SSH-2.0-x\r\n\r\n", "net/http: HTTP/1.x transport connection broken: malformed HTTP response \"SSH-2.0-x\""},
        Row{"HTTP/1.1 2x0 OK\r\n\r\n", "net/http: HTTP/1.x transport connection broken: malformed HTTP status code \"2x0\""},
        Row{"HTTP/1.1 101 Switching Protocols\r\n\r\n", "the service switched protocols when none was asked for"}}) {
    Both both([&](Peer& peer) { peer.read_head(), peer.write(row.answer); });
    RawAnswer told = both.client.get("/p/x");
    EXPECT_EQ(told.status, 503) << row.answer;
    EXPECT_EQ(told.body, "error trying to reach service: " + std::string(row.why));
    EXPECT_EQ(both.client.get("/p/x").status, 503);  // the client's connection stays usable
  }
  Both reset([](Peer& peer) { peer.read_head(), peer.reset(); });
  EXPECT_EQ(reset.client.get("/p/x").body, "error trying to reach service: read tcp: read: connection reset by peer");
  Both plain([](Peer& peer) { peer.read_some(), peer.write("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  Proxy secure(plain.backend.port(), true);
  EXPECT_TRUE(RawClient(secure.port()).get("/p/x").body.starts_with("error trying to reach service: tls: "));
}

TEST(Relay, an_answer_that_breaks_off_breaks_off_for_the_client) {
  for (const char* part :
       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nnonsense\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf"}) {
    Both both([&](Peer& peer) { peer.read_head(), peer.write(part); });
    both.client.send("GET /p/x HTTP/1.1\r\nHost: x\r\n\r\n");
    RawAnswer head = both.client.receive_head();
    EXPECT_EQ(head.status, 200);
    std::string rest = both.client.receive_until("never");  // to the end of the connection
    EXPECT_NE(rest.find("half"), rest.npos);
    EXPECT_EQ(rest.find("\r\n0\r\n"), rest.npos);  // the chunked body is not terminated properly
    EXPECT_NE(both.proxy.outcome(), "");
  }
}

TEST(Relay, a_client_that_leaves_ends_it_for_the_server) {
  Guarded<bool> asked{false}, left{false};
  Both both([&](Peer& peer) {
    peer.read_head();
    asked.with([](bool& a) { a = true; });
    asked.notify();
    bool ended = peer.read_some().empty();  // the backend sends nothing
    left.with([&](bool& l) { l = ended; });
    left.notify();
  });
  both.client.send("GET /p/x HTTP/1.1\r\nHost: x\r\n\r\n");
  auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::seconds(60); };
  auto is = [](bool b) { return b; };
  EXPECT_TRUE(asked.wait_until({}, soon(), is, is));
  both.client.close();
  EXPECT_TRUE(left.wait_until({}, soon(), is, is));
  EXPECT_EQ(both.proxy.outcome(), "context canceled");
}

TEST(Relay, the_next_request_may_wait_behind_one_that_takes_long) {
  Both both([](Peer& peer) {
    std::string head = peer.read_head();
    std::this_thread::sleep_for(milliseconds(100));
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + head.substr(5, 2));
  });
  both.client.send("GET /p/aa HTTP/1.1\r\nHost: x\r\n\r\nGET /p/bb HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(both.client.receive().body, "aa");
  EXPECT_EQ(both.client.receive().body, "bb");
}

TEST(Relay, a_server_that_wants_no_more_of_a_body_is_heard) {
  Both both([](Peer& peer) {
    peer.read_head(), peer.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
  });
  both.client.send("POST /p/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + std::string(1000, 'x'));
  RawAnswer answer = both.client.receive();
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.body, "big");
  EXPECT_TRUE(both.client.at_end());  // the rest of the body is not parsed as a request
}

TEST(Relay, a_body_that_breaks_off_is_not_taken_for_a_whole_one) {
  Guarded<std::optional<std::string>> body;
  Both both([&](Peer& peer) {
    peer.read_head();
    std::string all;
    for (std::string some; !(some = peer.read_some()).empty();) all += some;
    body.with([&](auto& b) { b = all; });
    body.notify();
  });
  both.client.send("POST /p/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nnonsense\r\n");
  EXPECT_EQ(both.client.receive().status, 400);
  std::string received = body.wait_until(
      {}, std::chrono::steady_clock::now() + std::chrono::seconds(60), [](const auto& b) { return b.has_value(); },
      [](const auto& b) { return b.value_or("it did not end"); });
  EXPECT_EQ(received, "3\r\nabc\r\n");  // without the last chunk
}

TEST(Relay, closing_the_server_ends_what_waits) {
  auto both = std::make_unique<Both>([](Peer& peer) {
    peer.read_head();
    while (!peer.read_some().empty()) {
    }
  });
  both->client.send("GET /p/x HTTP/1.1\r\nHost: x\r\n\r\n");
  RawClient sender(both->proxy.port());
  sender.send("POST /p/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" + std::string(100'000, 'x'));
  while (both->proxy.front().counts().watches < 2) std::this_thread::yield();
  auto began = std::chrono::steady_clock::now();
  both->proxy.front().stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30)) << "a body may come for a minute";
}

TEST(Relay, tls_is_spoken_with_whoever_answers) {
  HttpServer secure(
      serving(),
      [](Exchange& exchange) {
        auto body = exchange.read_body(64 << 20);
        exchange.answer.body = exchange.head.method + " " + exchange.head.path + " " + std::to_string(body ? body->size() : 0);
        exchange.answer.content_type = "text/plain";
      },
      [](const Head&) { return false; }, refuse);
  Proxy proxy(MUST(secure.start({{"127.0.0.1", 0}})).front().port, true);
  RawClient client(proxy.port());
  EXPECT_EQ(client.get("/p/a").body, "GET /a 0");
  EXPECT_EQ(client.ask("POST", "/p/b", std::string(5'000'000, 'x')).body, "POST /b 5000000");
}

TEST(Relay, a_connection_may_become_another_protocols) {
  Both both([](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\nX-Mine: 1\r\n\r\nfirst,");
    for (std::string some; !(some = peer.read_some()).empty() && some != "bye";) peer.write(some);
  });
  both.client.send("GET /p/x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly");
  RawAnswer head = both.client.receive_head();
  EXPECT_EQ(head.status, 101);
  EXPECT_EQ(head.header("Upgrade"), "echo");
  EXPECT_EQ(head.header("Connection"), "Upgrade");
  EXPECT_EQ(head.header("X-Mine"), "1");
  EXPECT_EQ(both.client.receive_exactly(11), "first,early");
  for (int i = 0; i < 50; i++) {
    std::string binary("\0\1\r\n\xff", 5);
    both.client.send(binary + std::to_string(i));
    EXPECT_EQ(both.client.receive_exactly(binary.size() + std::to_string(i).size()), binary + std::to_string(i));
  }
  both.client.send("bye");
  EXPECT_TRUE(both.client.at_end());  // the backend disconnected, so the proxy closes the connection
  EXPECT_EQ(both.proxy.outcome(), "");
}

TEST(Relay, a_tunnel_ends_when_its_client_leaves_or_the_server_closes) {
  Guarded<int> ended{0};
  Both both([&](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n");
    if (!peer.read_some().empty()) return;
    ended.with([](int& count) { count++; });
    ended.notify();
  });
  const std::string upgrade = "GET /p/x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
  auto has_ended = [&](int times) {
    return ended.wait_until(
        {}, std::chrono::steady_clock::now() + std::chrono::seconds(60), [&](int e) { return e == times; },
        [&](int e) { return e == times; });
  };
  both.client.send(upgrade);
  EXPECT_EQ(both.client.receive_head().status, 101);
  both.client.close();
  EXPECT_TRUE(has_ended(1));
  RawClient second(both.proxy.port());
  second.send(upgrade);
  EXPECT_EQ(second.receive_head().status, 101);
  both.proxy.front().stop();
  EXPECT_TRUE(has_ended(2));
}

TEST(Relay, a_refused_upgrade_is_told) {
  NextAnswer answer;
  Both both([&](Peer& peer) { peer.read_head(), peer.write(answer.get()); });
  const std::string upgrade = "Connection: Upgrade\r\nUpgrade: echo\r\n";
  answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
  RawAnswer refused = both.client.get("/p/x", upgrade);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body, "no");
  answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  RawAnswer ignored = RawClient(both.proxy.port()).get("/p/x", upgrade);
  EXPECT_EQ(ignored.status, 500);
  EXPECT_EQ(ignored.body, "invalid upgrade response: status code 200");
  const ClosedPort closed;
  Proxy nobody(closed.number());
  EXPECT_EQ(RawClient(nobody.port()).get("/p/x", upgrade).body,
            "error dialing backend: dial tcp 127.0.0.1:" + closed.text() + ": connect: connection refused");
}

}  // namespace
}  // namespace coracle::api
