// SPDX-License-Identifier: Apache-2.0
// HTTP over the local socket: how a response is framed, and what happens when the server's side breaks.
#include "store/client/local_http.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "runtime/sys/socket.h"

namespace coracle {
namespace {

// A server that plays one script per connection: it sends the script's pieces, after having received as much as the piece says.
class LocalHttpTest : public testing::Test {
 protected:
  struct Piece {
    std::string after, send;  // `after`: what the request ends with
  };
  using Script = std::vector<Piece>;

  LocalHttpTest() {
    directory_ = testing::TempDir() + "/local-http-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    path_ = directory_ + "/s";
  }
  ~LocalHttpTest() override {
    if (server_.joinable()) server_.join();
    std::filesystem::remove_all(directory_);
  }
  // `holds`: the last connection is kept open until `release`.
  void serve(std::vector<Script> scripts, std::shared_ptr<Guarded<bool>> holds = nullptr) {
    listener_ = MUST(sys::listen_local(path_));
    server_ = std::thread([this, scripts = std::move(scripts), holds] {
      for (const Script& script : scripts) {
        (void)sys::wait_ready(listener_.get(), true, false, -1, std::nullopt);
        uid_t uid = 0;
        Fd socket = MUST(sys::accept_local(listener_, uid));
        std::string received;
        for (const auto& [after, send] : script) {
          char bytes[4096];
          while (received.find(after) == received.npos) {
            auto count = sys::receive(socket, bytes, sizeof bytes, -1);
            if (!count || *count == 0) break;
            received.append(bytes, *count);
          }
          for (char byte : send) (void)sys::send_all(socket, {&byte, 1}, -1);  // at each place a read may end
        }
        received_ += received;
        if (holds && &script == &scripts.back())
          holds->wait(
              {}, [](bool released) { return released; }, [](bool) {});
      }
    });
  }
  static LocalHttp::Request get() { return {.head = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", .body = {}}; }
  static constexpr const char* kEnd = "\r\n\r\n";

  std::string directory_, path_, received_;
  Fd listener_;
  std::thread server_;
};

TEST_F(LocalHttpTest, reads_each_framing) {
  struct Row {
    const char *response, *body;
    int status;
  };
  const std::vector<Row> rows = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nX: y\r\n\r\n", "hello", 200},
      {"HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", 200},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "no", 404},
      {"HTTP/1.1 204 No Content\r\n\r\n", "", 204},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", 200}};
  std::vector<Script> scripts;
  for (const Row& row : rows) scripts.push_back({{kEnd, row.response}});
  serve(scripts);
  for (const Row& row : rows) {
    LocalHttp http(path_);  // a connection for each
    Exchange exchange;
    auto done = http.run(get(), exchange);
    ASSERT_TRUE(done && *done) << row.response << ": " << done->error().text();
    EXPECT_EQ(exchange.answer.body, row.body);
    EXPECT_EQ(exchange.answer.status, row.status);
  }
}

TEST_F(LocalHttpTest, keeps_a_connection_for_the_next_request) {
  const std::string response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  serve({{{"/one HTTP/1.1\r\nHost: x\r\n\r\n", response}, {"/two HTTP/1.1\r\nHost: x\r\n\r\n", response}}});
  LocalHttp http(path_);
  for (const char* path : {"/one", "/two"}) {
    Exchange exchange;
    auto done = http.run({.head = std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\n\r\n", .body = {}}, exchange);
    ASSERT_TRUE(done && *done) << path;
    EXPECT_EQ(exchange.answer.body, "ok");
  }
}

TEST_F(LocalHttpTest, takes_another_connection_when_the_server_has_closed_the_idle_one) {
  const std::string response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  serve({{{kEnd, response}}, {{kEnd, response}}});
  LocalHttp http(path_);
  for (int i = 0; i < 2; ++i) {
    Exchange exchange;
    auto done = http.run(get(), exchange);
    ASSERT_TRUE(done && *done) << i;
    EXPECT_EQ(exchange.answer.body, "ok");
  }
}

TEST_F(LocalHttpTest, says_when_a_response_breaks_off_or_is_none) {
  const std::vector<std::string> responses = {"",
                                              "HTTP/1.1 200 OK\r\n",
                                              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
                                              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
                                              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
                                              "SSH-2.0-x\r\n",
                                              "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"};
  std::vector<Script> scripts;
  for (const auto& response : responses) scripts.push_back({{kEnd, response}});
  serve(scripts);
  for (const auto& response : responses) {
    LocalHttp http(path_);
    Exchange exchange;
    auto done = http.run(get(), exchange);
    ASSERT_TRUE(done) << response;
    ASSERT_FALSE(*done) << response;
    EXPECT_EQ(done->error().code(), Code::unavailable) << response;
  }
}

TEST_F(LocalHttpTest, a_body_of_unknown_length_is_sent_in_chunks) {
  serve({{{"\r\n0\r\n\r\n", "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"}}});
  int pieces = 2;
  std::function<size_t(char*, size_t)> source = [&](char* to, size_t) {
    return pieces-- > 0 ? (to[0] = 'x', size_t(1)) : size_t(0);
  };
  Exchange exchange;
  exchange.source = &source;
  LocalHttp http(path_);
  auto done = http.run({.head = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", .body = {}}, exchange);
  ASSERT_TRUE(done && *done);
  server_.join();
  EXPECT_TRUE(received_.ends_with("\r\n\r\n1\r\nx\r\n1\r\nx\r\n0\r\n\r\n")) << received_;
}

TEST_F(LocalHttpTest, an_early_refusal_ends_the_upload) {
  auto released = std::make_shared<Guarded<bool>>(false);
  serve({{{kEnd, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"}}}, released);
  const std::string body(8 << 20, 'x');  // more than the kernel takes
  Exchange exchange;
  LocalHttp http(path_);
  auto done = http.run({.head = "POST / HTTP/1.1\r\nHost: x\r\n\r\n", .body = body}, exchange);
  ASSERT_TRUE(done && *done);
  EXPECT_EQ(exchange.answer.status, 413);
  EXPECT_EQ(exchange.answer.body, "big");
  released->with([](bool& is) { is = true; });
  released->notify();
}

TEST_F(LocalHttpTest, a_silent_server_is_given_up_in_time) {
  auto released = std::make_shared<Guarded<bool>>(false);
  serve({{{kEnd, "HTTP/1.1 200 OK\r\n"}}}, released);
  Exchange exchange;
  LocalHttp http(path_);
  LocalHttp::Request request = get();
  request.timeout = std::chrono::milliseconds(50);
  auto done = http.run(request, exchange);
  ASSERT_TRUE(done);
  ASSERT_FALSE(*done);
  EXPECT_EQ(done->error().code(), Code::timeout);
  released->with([](bool& is) { is = true; });
  released->notify();
}

TEST_F(LocalHttpTest, a_stop_ends_an_idle_stream) {
  auto released = std::make_shared<Guarded<bool>>(false);
  serve({{{kEnd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"}}}, released);
  std::stop_source stop;
  std::string seen;
  std::function<bool(std::string_view)> sink = [&](std::string_view bytes) {
    seen += bytes;
    if (seen == "hi") stop.request_stop();
    return true;
  };
  Exchange exchange;
  exchange.sink = &sink, exchange.stop = stop.get_token();
  LocalHttp http(path_);
  auto done = http.run(get(), exchange);
  EXPECT_TRUE(done && *done);
  EXPECT_EQ(seen, "hi");
  released->with([](bool& is) { is = true; });
  released->notify();
}

TEST_F(LocalHttpTest, nobody_there_is_no_error) {
  Exchange exchange;
  EXPECT_FALSE(LocalHttp(path_).run(get(), exchange));
  EXPECT_FALSE(LocalHttp(path_).connect());
  { Fd gone = MUST(sys::listen_local(path_)); }
  EXPECT_FALSE(LocalHttp(path_).run(get(), exchange)) << "a socket that a killed server left";
}

}  // namespace
}  // namespace coracle
