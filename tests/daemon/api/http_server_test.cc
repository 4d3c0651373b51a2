// SPDX-License-Identifier: Apache-2.0
// The HTTP server against misbehaving clients: each pitfall of the HTTP library, each limit, each way to disconnect.
#include "daemon/api/http_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <new>
#include <thread>

#include "runtime/base/guarded.h"
#include "tests/daemon/api/raw_client.h"

namespace coracle::api {
namespace {

using std::chrono::milliseconds;

class HttpServerTest : public testing::Test {
 protected:
  void start(HttpServerLimits limits = {}) {
    KeyPair ca = MUST(make_ca("test"));
    CertificateRequest request;
    request.common_name = "localhost", request.dns_names = {"localhost"}, request.server = true;
    request.not_after = system_clock().now() + std::chrono::hours(1);
    KeyPair serving = MUST(issue(ca, request));
    MUST(tls.set(serving.certificate, serving.key, ca.certificate));
    http_server = std::make_unique<HttpServer>(
        tls, [this](Exchange& exchange) { handle(exchange); }, [](const Head& head) { return head.path.starts_with("/long"); },
        [](Exchange& exchange, const Error& why) {
          exchange.answer.status = why.code() == Code::too_many_requests ? 429 : why.code() == Code::too_large ? 413 : 400;
          exchange.answer.body = why.text();
        },
        limits);
    port = MUST(http_server->start({{"127.0.0.1", 0}})).front().port;
  }
  void handle(Exchange& exchange) {
    if (exchange.head.path == "/long") return watch(exchange);
    if (exchange.head.path == "/hold") return hold();
    if (exchange.head.path == "/ignore") return;
    if (exchange.head.path == "/fails") throw std::bad_alloc();
    if (exchange.head.path == "/large") return void(exchange.answer.body.assign(kLarge, 'x'));
    if (exchange.head.path == "/empty") return void(exchange.answer.status = 204);
    if (exchange.head.path == "/small") {
      auto body = exchange.read_body(10);
      exchange.answer.status = body ? 200 : body.error().code() == Code::too_large ? 413 : 400;
      return;
    }
    auto body = exchange.read_body();
    exchange.answer.body = exchange.head.method + " " + exchange.head.path + " " + (body ? *body : body.error().text());
    exchange.answer.content_type = "text/plain";
  }
  void watch(Exchange& exchange) {
    ChunkedAnswer answer(exchange, "text/plain", {});
    answer.write("begun") && answer.flush();
    std::stop_token stirred = exchange.notice_peer();
    watching.with([](int& count) { count++; });
    watching.notify();
    Guarded<bool> nothing(false);
    nothing.wait(
        stirred, [](bool) { return false; }, [](bool) {});
    watching.with([](int& count) { count--; });
    watching.notify();
  }
  void hold() {
    held.with([](int& count) { count++; });
    held.notify();
    released.wait(
        {}, [](bool r) { return r; }, [](bool) {});
  }
  // Waits until `count` connections are idle: a connection becomes idle a moment after its response.
  bool rest(int count) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (http_server->counts().resting != count && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(1));
    return http_server->counts().resting == count;
  }
  template <typename P>
  bool eventually(Guarded<int>& what, P holds) {
    return what.wait_until({}, std::chrono::steady_clock::now() + std::chrono::seconds(60), holds, holds);
  }
  // Waits until `count` requests wait for their bodies. The server's thread counts them, so the number may change before or after
  // the client notices.
  bool await(int HttpServer::Counts::*what, int count) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (http_server->counts().*what != count && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(1));
    return http_server->counts().*what == count;
  }
  bool await_bodies(int count) { return await(&HttpServer::Counts::bodies, count); }
  void release() {
    released.with([](bool& r) { r = true; });
    released.notify();
  }

  static constexpr size_t kLarge = 32 << 20;  // larger than the socket buffers
  TlsSettings tls;
  uint16_t port = 0;
  Guarded<int> watching{0}, held{0};
  Guarded<bool> released{false};
  std::unique_ptr<HttpServer> http_server;  // last member: its handlers use those above
};

TEST_F(HttpServerTest, answers_many_requests_on_one_connection) {
  start();
  RawClient client(port);
  for (int i = 0; i < 20; i++) {
    RawAnswer answer = client.ask("POST", "/x", "body");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "POST /x body");
  }
  EXPECT_EQ(http_server->counts().connections, 1);
}

TEST_F(HttpServerTest, answers_requests_sent_at_once_in_their_order) {
  start();
  RawClient client(port);
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receive().body, "GET /a ");
  EXPECT_EQ(client.receive().body, "GET /b ");
}

TEST_F(HttpServerTest, answers_a_client_that_is_one_request_ahead_or_pauses) {
  start();
  RawClient client(port);
  auto path = [](int i) { return "/" + std::to_string(i); };
  auto send = [&](int i) { return client.send("GET " + path(i) + " HTTP/1.1\r\nHost: x\r\n\r\n"); };
  ASSERT_TRUE(send(0));
  for (int i = 0; i < 200; i++) {
    const bool ahead = i % 20 < 10;
    if (ahead) {
      ASSERT_TRUE(send(i + 1));
    }
    EXPECT_EQ(client.receive().body, "GET " + path(i) + " ");
    if (i % 40 == 39) std::this_thread::sleep_for(std::chrono::milliseconds(30));  // it rests meanwhile
    if (!ahead) {
      ASSERT_TRUE(send(i + 1));
    }
  }
  EXPECT_EQ(http_server->counts().connections, 1);
}

TEST_F(HttpServerTest, reads_chunks_and_gzip_and_a_post_without_length_at_once) {
  HttpServerLimits limits;  // whoever waits for a body that does not come waits for ever
  limits.body = limits.body_grace = limits.rest = std::chrono::hours(1);
  start(limits);
  RawClient client(port);
  client.send("POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "POST /x abcde");
  client.send("DELETE /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "DELETE /x abc");
  client.send("POST /x HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receive().body, "POST /x ");
}

TEST_F(HttpServerTest, reads_away_a_body_that_nobody_wants) {
  start();
  RawClient client(port);
  for (std::string method : {"GET", "DELETE", "OPTIONS"}) {
    client.send(method + " /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + method +
                " /x HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.receive().status, 200) << method;
    EXPECT_EQ(client.receive().body, method + " /x ");
  }
  client.send("GET /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "GET /x abc");
}

TEST_F(HttpServerTest, does_not_take_the_body_of_a_watch_for_its_end) {
  start();
  RawClient client(port);
  client.send("GET /long HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
  ASSERT_TRUE(eventually(watching, [](int count) { return count == 1; }));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(watching.with([](int count) { return count; }), 1);
  client.close();
  EXPECT_TRUE(eventually(watching, [](int count) { return count == 0; }));
}

TEST_F(HttpServerTest, one_failed_request_is_no_other_ones) {
  start();
  RawClient client(port);
  for (const char* method : {"GET", "POST"}) {
    EXPECT_EQ(client.ask(method, "/fails", method[0] == 'P' ? "body" : "").status, 500);
    EXPECT_EQ(client.get("/x").status, 200);
  }
}

TEST_F(HttpServerTest, frames_an_answer_without_a_body_as_such) {
  start();
  RawClient client(port);
  client.send("GET /empty HTTP/1.1\r\nHost: x\r\n\r\nHEAD /x HTTP/1.1\r\nHost: x\r\n\r\n");
  RawAnswer empty = client.receive_head(), head = client.receive_head();
  EXPECT_EQ(empty.status, 204);
  EXPECT_EQ(empty.header("Content-Length"), "");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), std::to_string(std::string("HEAD /x ").size()));
  EXPECT_EQ(client.get("/x").body, "GET /x ") << "nothing is left of what came before";
}

TEST_F(HttpServerTest, does_not_let_a_hostile_range_or_boundary_overflow_a_stack) {
  start();
  std::string ranges = "bytes=0-1";
  for (int i = 0; i < 1900; i++) ranges += ",0-1";
  RawClient client(port);
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(client.get("/" + std::string(8000, 'a'), "Range: " + ranges + "\r\nRange: bytes=9-1\r\n").status, 200);
    EXPECT_EQ(client.ask("POST", "/x", "--b--", "Content-Type: multipart/form-data; boundary=" + std::string(7000, 'b') + "\r\n")
                  .status,
              200);
    EXPECT_EQ(client.ask("POST", "/x", "a=b", "Content-Type: application/x-www-form-urlencoded\r\n").body, "POST /x a=b");
  }
}

TEST_F(HttpServerTest, refuses_malformed_heads_and_hangs_up) {
  start();
  for (const char* head : {"GARBAGE\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
                           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    RawClient client(port);
    client.send(head);
    EXPECT_EQ(client.receive().status, 400) << head;
    EXPECT_TRUE(client.at_end()) << head;
  }
  RawClient client(port);
  client.send("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(kHeadBytesMax + 100, 'a'));
  EXPECT_EQ(client.receive().status, 413);
}

TEST_F(HttpServerTest, refuses_what_does_not_speak_tls) {
  start();
  BIO* plain = BIO_new_connect(("127.0.0.1:" + std::to_string(port)).c_str());
  ASSERT_EQ(BIO_do_connect(plain), 1);
  BIO_puts(plain, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  char buffer[512];
  while (BIO_read(plain, buffer, sizeof buffer) > 0) {
  }
  BIO_free_all(plain);
  EXPECT_EQ(RawClient(port).get("/x").status, 200);
}

TEST_F(HttpServerTest, caps_bodies_and_goes_on) {
  start();
  RawClient client(port);
  EXPECT_EQ(client.ask("POST", "/small", "0123456789").status, 200);
  EXPECT_EQ(client.ask("POST", "/small", "0123456789x").status, 413);
  EXPECT_TRUE(client.at_end()) << "what is left of the body must not be read as a request";
  RawClient other(port);
  EXPECT_EQ(other.ask("POST", "/ignore", std::string(1000, 'x')).status, 200);
  EXPECT_EQ(other.ask("POST", "/x", "y").body, "POST /x y") << "a small body that nobody read is drained";
}

TEST_F(HttpServerTest, shows_the_head_of_an_endless_answer_at_once_though_gzip_was_asked_for) {
  start();
  RawClient client(port);
  client.send("GET /long HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, deflate, br\r\n\r\n");
  RawAnswer head = client.receive_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Encoding"), "");
  EXPECT_EQ(client.receive_chunk(), "begun");
}

TEST_F(HttpServerTest, notices_a_client_that_leaves_a_watch) {
  start();
  {
    RawClient client(port);
    client.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(eventually(watching, [](int count) { return count == 1; }));
  }
  EXPECT_TRUE(eventually(watching, [](int count) { return count == 0; }));
}

TEST_F(HttpServerTest, holds_no_thread_for_a_resting_connection) {
  HttpServerLimits limits;
  limits.requests = 2, limits.watches = 1;
  start(limits);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 40; i++) {
    clients.push_back(std::make_unique<RawClient>(port));
    ASSERT_EQ(clients.back()->get("/x").status, 200) << i;
  }
  EXPECT_EQ(http_server->counts().connections, 40);
  EXPECT_LE(http_server->counts().threads, 2 + 1 + kWorkersSpare);
  for (auto& client : clients) EXPECT_EQ(client->get("/x").status, 200);
}

TEST_F(HttpServerTest, takes_no_thread_for_those_who_leave_at_rest) {
  start();
  RawClient busy(port);
  busy.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually(held, [](int count) { return count == 1; }));
  const int threads = http_server->counts().threads;
  std::vector<BIO*> silent;
  for (int i = 0; i < 200; i++) {
    silent.push_back(BIO_new_connect(("127.0.0.1:" + std::to_string(port)).c_str()));
    ASSERT_EQ(BIO_do_connect(silent.back()), 1);
  }
  ASSERT_TRUE(rest(200));
  for (BIO* each : silent) BIO_free_all(each);
  ASSERT_TRUE(await(&HttpServer::Counts::connections, 1));
  EXPECT_LE(http_server->counts().threads, threads) << "a thread is idle for some time before it ends";
  release();
  EXPECT_EQ(busy.receive().status, 200);
}

TEST_F(HttpServerTest, says_429_beyond_its_limits_and_recovers) {
  HttpServerLimits limits;
  limits.requests = 2, limits.watches = 1;
  start(limits);
  RawClient first(port), second(port), third(port), watcher(port), another(port);
  first.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  second.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually(held, [](int count) { return count == 2; }));
  EXPECT_EQ(third.get("/x").status, 429);
  watcher.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually(watching, [](int count) { return count == 1; })) << "watches have a limit of their own";
  EXPECT_EQ(another.get("/long").status, 429);
  release();
  EXPECT_EQ(first.receive().status, 200);
  EXPECT_EQ(second.receive().status, 200);
  EXPECT_EQ(third.get("/x").status, 200);
}

TEST_F(HttpServerTest, closes_clients_beyond_its_connections) {
  HttpServerLimits limits;
  limits.connections = 2;
  start(limits);
  RawClient first(port), second(port);
  first.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  second.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually(held, [](int count) { return count == 2; }));
  EXPECT_FALSE(RawClient(port).connected);
  release();
  EXPECT_EQ(first.receive().status, 200);
}

TEST_F(HttpServerTest, who_has_rested_longest_makes_space_for_a_newcomer) {
  HttpServerLimits limits;
  limits.connections = 3;
  start(limits);
  RawClient busy(port), longest(port), shorter(port);
  busy.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually(held, [](int count) { return count == 1; }));
  EXPECT_EQ(longest.get("/x").status, 200);
  ASSERT_TRUE(rest(2)) << "with the other, which has said nothing yet";
  EXPECT_EQ(shorter.get("/x").status, 200);
  ASSERT_TRUE(rest(2));
  RawClient newcomer(port);
  ASSERT_TRUE(newcomer.connected) << "at once, though those at rest have just begun to";
  EXPECT_EQ(newcomer.get("/x").status, 200);
  EXPECT_TRUE(longest.at_end());
  EXPECT_EQ(shorter.get("/x").status, 200);
  release();
  EXPECT_EQ(busy.receive().status, 200);
}

TEST_F(HttpServerTest, a_flood_of_silent_strangers_drives_out_nobody_else) {
  HttpServerLimits limits;
  limits.connections = 4;
  start(limits);
  RawClient known(port);
  EXPECT_EQ(known.get("/x").status, 200);
  std::vector<BIO*> silent;
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 20; i++) {
      silent.push_back(BIO_new_connect(("127.0.0.1:" + std::to_string(port)).c_str()));
      ASSERT_EQ(BIO_do_connect(silent.back()), 1);
    }
    RawClient newcomer(port);
    EXPECT_TRUE(newcomer.connected && newcomer.get("/x").status == 200) << "round " << round;
  }
  EXPECT_EQ(known.get("/x").status, 200) << "who has been served before stays longer than who said nothing";
  for (BIO* each : silent) BIO_free_all(each);
}

TEST_F(HttpServerTest, gives_up_on_those_who_send_slowly_or_nothing) {
  HttpServerLimits limits;
  limits.handshake = limits.head = limits.body = limits.rest = milliseconds(1000);
  start(limits);
  RawClient slow_head(port);
  slow_head.send("GET / HTT");
  RawClient slow_body(port);
  slow_body.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
  std::unique_ptr<RawClient> resting;
  int status = 0;
  for (int tries = 0; tries < 20 && status != 200; tries++) {  // on a busy machine a client may be late itself
    resting = std::make_unique<RawClient>(port);
    status = resting->get("/x").status;
  }
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(slow_head.at_end());
  (void)slow_body.receive();
  EXPECT_TRUE(slow_body.at_end());
  EXPECT_TRUE(resting->at_end());
  BIO* silent = BIO_new_connect(("127.0.0.1:" + std::to_string(port)).c_str());
  ASSERT_EQ(BIO_do_connect(silent), 1);
  char byte;
  EXPECT_LE(BIO_read(silent, &byte, 1), 0);
  BIO_free_all(silent);
}

TEST_F(HttpServerTest, a_short_deadline_holds_while_another_client_may_rest_for_longer) {
  HttpServerLimits limits;
  limits.head = milliseconds(200), limits.rest = std::chrono::hours(1);
  start(limits);
  RawClient resting(port), slow(port);
  EXPECT_EQ(resting.get("/x").status, 200);
  ASSERT_TRUE(rest(2));
  slow.send("GET / HTT");
  EXPECT_TRUE(slow.at_end()) << "long before the other";
}

TEST_F(HttpServerTest, holds_no_thread_for_those_who_send_slowly) {
  HttpServerLimits limits;
  limits.requests = 1, limits.watches = 1;
  start(limits);
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 60; i++) {
    slow.push_back(std::make_unique<RawClient>(port));
    slow.back()->send("GET /slow HTTP/1.1\r\nHost: ");
  }
  EXPECT_EQ(RawClient(port).get("/x").status, 200);
  EXPECT_LE(http_server->counts().threads, 1 + 1 + kWorkersSpare);
  for (auto& client : slow) client->send("x\r\n\r\n");
  int served = 0;
  for (auto& client : slow) {
    int status = client->receive().status;
    EXPECT_TRUE(status == 200 || status == 429) << status;
    served += status == 200;
  }
  EXPECT_GT(served, 0);
}

TEST_F(HttpServerTest, holds_no_thread_for_one_who_sends_a_record_byte_by_byte) {
  start();
  RawClient slow(port);
  EXPECT_EQ(slow.get("/x").status, 200);
  const std::string head("\x17\x03\x03\x40\x00", 5);  // of a TLS record of 16 KiB. Source: RFC 8446 section 5.2
  ASSERT_EQ(::send(slow.descriptor(), head.data(), head.size(), MSG_NOSIGNAL), ssize_t(head.size()));
  std::jthread drips([&](std::stop_token stop) {
    while (!stop.stop_requested() && ::send(slow.descriptor(), "x", 1, MSG_NOSIGNAL) == 1)
      std::this_thread::sleep_for(milliseconds(2));
  });
  EXPECT_TRUE(rest(1)) << "between two bytes";
}

TEST_F(HttpServerTest, does_not_wait_long_for_a_body_that_nobody_wants) {
  HttpServerLimits limits;  // whoever waits for the whole body waits for ever
  limits.body = limits.body_grace = limits.rest = std::chrono::hours(1);
  start(limits);
  RawClient client(port);
  client.send("POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpServerTest, slow_bodies_take_no_place_of_others) {
  HttpServerLimits limits;
  limits.requests = 2, limits.bodies = 4;
  start(limits);
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 4; i++) {
    slow.push_back(std::make_unique<RawClient>(port));
    slow.back()->send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
    ASSERT_TRUE(await_bodies(i + 1));
  }
  EXPECT_TRUE(await(&HttpServer::Counts::requests, 0));
  RawClient other(port), one_more(port);
  EXPECT_EQ(other.ask("POST", "/x", "whole").body, "POST /x whole");
  one_more.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
  EXPECT_NE(one_more.receive().body.find("Too many requests"), std::string::npos);
  EXPECT_TRUE(one_more.at_end());
  for (auto& client : slow) {
    client->send("def");
    EXPECT_EQ(client->receive().body, "POST /x abcdef");
    EXPECT_EQ(client->get("/x").body, "GET /x ") << "its connection goes on";
  }
  EXPECT_TRUE(await_bodies(0));
}

TEST_F(HttpServerTest, answers_that_are_not_read_take_no_place_of_others) {
  HttpServerLimits limits;
  limits.requests = 1, limits.bodies = 2;
  start(limits);
  RawClient slow(port), slower(port), one_more(port), other(port);
  const std::string ask = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
  slow.send(ask);
  ASSERT_TRUE(await_bodies(1));
  slower.send(ask);
  ASSERT_TRUE(await_bodies(2));
  EXPECT_EQ(other.get("/x").status, 200);
  one_more.send(ask);
  EXPECT_LT(one_more.receive().body.size(), kLarge) << "too many do not read: it is cut off";
  EXPECT_EQ(slow.receive().body.size(), kLarge);
  EXPECT_EQ(slow.get("/x").status, 200);
  EXPECT_EQ(slower.receive().body.size(), kLarge);
  EXPECT_TRUE(await_bodies(0));
}

TEST_F(HttpServerTest, ends_a_body_that_crawls_and_lets_one_that_has_hurried_pause) {
  HttpServerLimits limits;
  limits.body_grace = milliseconds(100);
  start(limits);
  RawClient crawls(port), pauses(port), chunks(port);
  crawls.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
  RawAnswer ended = crawls.receive();
  EXPECT_EQ(ended.body, "POST /x the request body came too slowly");
  EXPECT_EQ(ended.header("Connection"), "close");
  EXPECT_TRUE(crawls.at_end());
  chunks.send("POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4");
  EXPECT_EQ(chunks.receive().body, "POST /x the request body came too slowly");
  std::string most(40'000, 'x');  // large enough for ten seconds
  pauses.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 40001\r\n\r\n" + most);
  ASSERT_TRUE(await_bodies(1));
  std::this_thread::sleep_for(milliseconds(400));
  pauses.send("y");
  EXPECT_EQ(pauses.receive().body, "POST /x " + most + "y");
}

TEST_F(HttpServerTest, who_is_answered_early_gets_to_read_it) {
  start();
  for (std::string path : {"/small", "/ignore"}) {
    RawClient client(port);
    client.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
    std::string piece(100'000, 'x');
    for (int i = 0; i < 50; i++) ASSERT_TRUE(client.send(piece)) << path << " " << i;
    RawAnswer answer = client.receive();
    EXPECT_EQ(answer.status, path == "/small" ? 413 : 200);
    EXPECT_EQ(answer.header("Connection"), "close");
    EXPECT_TRUE(client.at_end()) << path;
  }
  RawClient unread(port);
  unread.send("GARBAGE\r\n\r\n" + std::string(500'000, 'x'));
  EXPECT_EQ(unread.receive().status, 400);
}

TEST_F(HttpServerTest, who_goes_on_sending_for_ever_is_cut_off) {
  start();
  RawClient client(port);
  client.send("POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000000\r\n\r\n");
  std::string piece(1 << 20, 'x');
  int sent = 0;
  while (sent < 1000 && client.send(piece)) sent++;
  EXPECT_LT(sent, 1000);
  EXPECT_EQ(RawClient(port).get("/x").status, 200);
}

TEST_F(HttpServerTest, speaks_http_1_0) {
  start();
  RawClient client(port);
  for (int i = 0; i < 2; i++) {
    client.send("GET /x HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
    RawAnswer answer = client.receive();
    EXPECT_TRUE(answer.head.starts_with("HTTP/1.0 200 OK\r\n")) << answer.head;
    EXPECT_EQ(answer.header("Connection"), "keep-alive");
    EXPECT_EQ(answer.body, "GET /x ");
  }
  client.send("POST /x HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc");
  RawAnswer last = client.receive();
  EXPECT_EQ(last.header("Connection"), "close");
  EXPECT_EQ(last.body, "POST /x abc");
  EXPECT_TRUE(client.at_end());
  RawClient stream(port);
  stream.send("GET /long HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  RawAnswer head = stream.receive_head();
  EXPECT_EQ(head.header("Transfer-Encoding"), "") << "it has no chunks";
  EXPECT_EQ(head.header("Connection"), "close");
  EXPECT_EQ(stream.receive_exactly(5), "begun");
}

TEST_F(HttpServerTest, says_that_it_closes_when_it_was_asked_to) {
  start();
  RawClient client(port), stream(port);
  EXPECT_EQ(client.get("/x", "Connection: x, close\r\n").header("Connection"), "close");
  EXPECT_TRUE(client.at_end());
  stream.send("GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(stream.receive_head().header("Connection"), "close");
}

TEST_F(HttpServerTest, tells_to_go_on_only_who_is_read) {
  start();
  RawClient refused(port), read(port), chunks(port);
  const std::string expects = " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n";
  refused.send("POST /ignore" + expects + "Content-Length: 3\r\n\r\n");
  RawAnswer answer = refused.receive();
  EXPECT_EQ(answer.status, 200) << "not 100";
  EXPECT_EQ(answer.header("Connection"), "close") << "whether the body comes nobody knows";
  EXPECT_TRUE(refused.at_end());
  read.send("POST /x" + expects + "Content-Length: 3\r\n\r\n");
  EXPECT_EQ(read.receive_head().status, 100);
  read.send("abc");
  EXPECT_EQ(read.receive().body, "POST /x abc");
  EXPECT_EQ(read.get("/x").status, 200);
  chunks.send("POST /x" + expects + "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(chunks.receive_head().status, 100);
  chunks.send("3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(chunks.receive().body, "POST /x abc");
}

TEST_F(HttpServerTest, takes_a_few_empty_lines_before_a_request) {
  start();
  RawClient client(port), too_many(port);
  client.send("\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receive().body, "GET /a ");
  client.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nb\r\nGET /c HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receive().body, "POST /b b");
  EXPECT_EQ(client.receive().body, "GET /c ");
  too_many.send("\r\n\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(too_many.receive().status, 400);
}

// Source: RFC 9112 section 2.2; Go net/textproto
TEST_F(HttpServerTest, takes_heads_whose_lines_end_without_a_carriage_return) {
  start();
  RawClient client(port);
  client.send("\nGET /a HTTP/1.1\nHost: x\n\nPOST /b HTTP/1.1\r\nHost: x\nContent-Length: 2\n\r\nhi");
  EXPECT_EQ(client.receive().body, "GET /a ");
  EXPECT_EQ(client.receive().body, "POST /b hi");
  for (std::string piece : {"GET /c HTTP/1.1\nHost: x\n", "\r", "\n"}) {
    client.send(piece);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  EXPECT_EQ(client.receive().body, "GET /c ");
}

TEST_F(HttpServerTest, passes_over_chunk_extensions_and_trailers) {
  start();
  RawClient client(port);
  const std::string post = "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 2; i++) {
    client.send(post + "3;a=b;c=\"d\"\r\nabc\r\n02 \r\nde\r\n0;last\r\nX-Sum: 5\r\nX-More: y\r\n\r\n");
    EXPECT_EQ(client.receive().body, "POST /x abcde");
  }
  for (std::string chunks : {"zz\r\nab\r\n0\r\n\r\n", "2\r\nabc\r\n0\r\n\r\n", "-2\r\nab\r\n0\r\n\r\n", "0x2\r\nab\r\n0\r\n\r\n",
                             "10000000000000000\r\nab", "\r\n", "2\nab\r\n0\r\n\r\n", "2;\nab\r\n0\r\n\r\n",
                             "2;x\r\r\nab\r\n0\r\n\r\n", "2;\nxx\r\nab\r\n0\r\n\r\n", "2\r\nab\n0\r\n\r\n"}) {
    RawClient broken(port);
    broken.send(post + chunks + "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(broken.receive().body, "POST /x the request body is malformed: chunked encoding") << chunks;
    EXPECT_TRUE(broken.at_end()) << chunks;
  }
  RawClient endless(port);
  endless.send(post + "0\r\n" + std::string(70'000, 'x'));
  EXPECT_EQ(endless.receive().body, "POST /x the request body is malformed: chunked encoding");
}

TEST_F(HttpServerTest, long_heads_are_few_at_a_time) {
  start();
  std::string half = "GET /x HTTP/1.1\r\nHost: x\r\nA: " + std::string(100'000, 'a');
  std::vector<std::unique_ptr<RawClient>> long_ones;
  for (int i = 0; i < 16; i++) {
    long_ones.push_back(std::make_unique<RawClient>(port));
    long_ones.back()->send(half);
    ASSERT_TRUE(await(&HttpServer::Counts::long_heads, i + 1));
  }
  RawClient one_more(port), usual(port);
  one_more.send(half);
  EXPECT_EQ(one_more.receive().status, 429);
  EXPECT_EQ(usual.get("/x").status, 200);
  for (auto& client : long_ones) {
    client->send("\r\n\r\n");
    EXPECT_EQ(client->receive().status, 200);
  }
  EXPECT_EQ(usual.get("/x", "A: " + std::string(900'000, 'a') + "\r\n").status, 200);
  EXPECT_TRUE(await(&HttpServer::Counts::long_heads, 0));
}

TEST_F(HttpServerTest, stops_with_everything_still_open) {
  start();
  RawClient resting(port), watcher(port);
  EXPECT_EQ(resting.get("/x").status, 200);
  watcher.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually(watching, [](int count) { return count == 1; }));
  http_server->stop();
  EXPECT_TRUE(resting.at_end());
  EXPECT_EQ(http_server->counts().threads, 0);
}

TEST_F(HttpServerTest, serves_new_certificates_without_a_restart) {
  start();
  RawClient before(port);
  KeyPair ca = MUST(make_ca("new"));
  CertificateRequest request;
  request.common_name = "new", request.server = true, request.not_after = system_clock().now() + std::chrono::hours(1);
  KeyPair serving = MUST(issue(ca, request));
  MUST(tls.set(serving.certificate, serving.key, ca.certificate));
  EXPECT_EQ(before.get("/x").status, 200);
  EXPECT_EQ(RawClient(port).get("/x").status, 200);
  EXPECT_FALSE(tls.set("nonsense", serving.key, ca.certificate));
  EXPECT_EQ(RawClient(port).get("/x").status, 200);
}

}  // namespace
}  // namespace coracle::api
