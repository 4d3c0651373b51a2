// SPDX-License-Identifier: Apache-2.0
// Parsing of ports, and the data between a local connection and the server, which the test simulates.
#include "ctl/forward.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "runtime/sys/file.h"
#include "tests/ctl/pair_socket.h"

namespace coracle::ctl {
namespace {

TEST(PortMapping, says_what_is_local_and_what_is_not) {
  struct Row {
    const char* text;
    std::optional<uint16_t> local;
    const char* remote;
  };
  for (const Row& row : {Row{"8080:80", 8080, "80"}, Row{"80", 80, "80"}, Row{":80", 0, "80"}, Row{"8080:http", 8080, "http"},
                         Row{"http", 0, "http"}, Row{"", {}, ""}, Row{"80:", {}, ""}, Row{"1:2:3", {}, ""}, Row{"x:80", {}, ""},
                         Row{"80:0", {}, ""}, Row{"70000", {}, ""}, Row{"70000:80", {}, ""}}) {
    auto mapping = parse_mapping(row.text);
    ASSERT_EQ(mapping.ok(), row.local.has_value()) << row.text;
    if (!mapping) continue;
    EXPECT_EQ(mapping->local, *row.local) << row.text;
    EXPECT_EQ(mapping->remote, row.remote) << row.text;
  }
  const std::string range = "'70000': strconv.ParseUint: parsing \"70000\": value out of range";
  EXPECT_EQ(parse_mapping("70000").error().text(), "error parsing local port " + range);
  EXPECT_EQ(parse_mapping("70000:80").error().text(), "error parsing local port " + range);
  EXPECT_EQ(parse_mapping(":70000").error().text(), "error parsing remote port " + range);
  EXPECT_EQ(parse_mapping("x:80").error().text(),
            "error parsing local port 'x': strconv.ParseUint: parsing \"x\": invalid syntax");
}

TEST(PodPort, is_none_of_udp_alone) {
  json::value pod = *parse_json(
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"ports":[{"name":"dns","containerPort":53,"protocol":"UDP"}]},
          {"ports":[{"containerPort":54,"protocol":"UDP"},{"containerPort":54,"protocol":"TCP"}]}]}})");
  json::value service = *parse_json(
      R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"dns","port":53,"protocol":"UDP"},{"name":"both","port":54,"protocol":"UDP"},
          {"port":54,"protocol":"TCP","targetPort":8054}]}})");
  for (const char* port : {"53", "dns"}) {
    EXPECT_EQ(pod_port(pod, nullptr, port).error().text(), "UDP protocol is not supported for " + std::string(port));
    EXPECT_EQ(pod_port(pod, &service, port).error().text(), "UDP protocol is not supported for " + std::string(port));
  }
  EXPECT_EQ(*pod_port(pod, nullptr, "54"), 54);
  EXPECT_TRUE(pod_port(pod, &service, "54"));
  EXPECT_EQ(*pod_port(pod, nullptr, "55"), 55) << "what a pod does not declare may be there";
}

TEST(PodPort, follows_a_services_ports_and_a_pods_names) {
  json::value pod = *parse_json(
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"ports":[{"containerPort":1}]},{"ports":[{"name":"web","containerPort":8080}]}]}})");
  json::value service = *parse_json(
      R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"http","port":80,"targetPort":"web"},{"name":"dns","port":53,"targetPort":5353},{"port":7}]}})");
  json::value headless =
      *parse_json(R"({"metadata":{"name":"h"},"spec":{"clusterIP":"None","ports":[{"port":80,"targetPort":8080}]}})");
  struct Row {
    const json::value* service;
    const char* port;
    uint16_t want;  // 0: refused
    const char* why;
  };
  for (const Row& row : {Row{nullptr, "80", 80, ""}, Row{nullptr, "web", 8080, ""},
                         Row{nullptr, "ftp", 0, "Pod 'p' does not have a named port 'ftp'"}, Row{&service, "80", 8080, ""},
                         Row{&service, "http", 8080, ""}, Row{&service, "53", 5353, ""}, Row{&service, "dns", 5353, ""},
                         Row{&service, "7", 7, ""}, Row{&service, "8080", 0, "Service s does not have a service port 8080"},
                         Row{&service, "ftp", 0, "Service 's' does not have a named port 'ftp'"}, Row{&headless, "80", 80, ""}}) {
    auto port = pod_port(pod, row.service, row.port);
    if (row.want) {
      ASSERT_TRUE(port) << row.port;
      EXPECT_EQ(*port, row.want) << row.port;
    } else {
      ASSERT_FALSE(port) << row.port;
      EXPECT_EQ(port.error().text(), row.why);
    }
  }
}

const std::string kGreeting("\x50\0", 2);

class Tied : public testing::Test {
 protected:
  void SetUp() override {
    begin();
    start();
  }
  void begin() {
    auto upstream = sys::make_socketpair(SOCK_STREAM), downstream = sys::make_socketpair(SOCK_STREAM);
    server = std::move(upstream->second), local = std::move(downstream->second);
    socket = std::make_unique<PairSocket>(std::move(upstream->first));
    inner = std::move(downstream->first);
    say(frame(0, kGreeting) + frame(1, kGreeting));
  }
  void start() {
    thread = std::jthread([this] { result.emplace(tie(*socket, std::move(inner))); });
  }
  void say(const std::string& bytes) {
    ASSERT_EQ(::send(server.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  std::string hear(size_t size) {
    std::string bytes(size, '\0');
    ssize_t got = ::recv(local.get(), bytes.data(), size, MSG_WAITALL);
    return bytes.substr(0, size_t(std::max<ssize_t>(got, 0)));
  }
  void leave() { say(std::string("\x88\x02\x03\xe8", 4)); }

  Fd server, local, inner;
  std::unique_ptr<PairSocket> socket;
  std::optional<Result<void>> result;
  std::jthread thread;
};

TEST_F(Tied, bytes_pass_and_ports_do_not) {
  say(frame(0, "hello"));
  EXPECT_EQ(hear(5), "hello");
  EXPECT_EQ(::send(local.get(), "hi", 2, 0), 2);
  EXPECT_EQ(next_from_client(server), std::string("\0hi", 3));
  leave();
  thread.join();
  EXPECT_TRUE(*result);
}

TEST_F(Tied, each_sides_end_is_told_while_the_other_goes_on) {
  ::shutdown(local.get(), SHUT_WR);
  EXPECT_EQ(next_from_client(server), std::string("\xff\0", 2));
  say(frame(0, "answer"));
  EXPECT_EQ(hear(6), "answer");
  say(frame(255, std::string(1, '\0')));
  EXPECT_EQ(hear(1), "");
  leave();
  thread.join();
  EXPECT_TRUE(*result);
}

TEST_F(Tied, a_pods_end_leaves_the_local_side_sending) {
  say(frame(255, std::string(1, '\0')));
  EXPECT_EQ(hear(1), "");
  EXPECT_EQ(::send(local.get(), "more", 4, 0), 4);
  EXPECT_EQ(next_from_client(server), std::string("\0more", 5));
  leave();
  thread.join();
}

TEST_F(Tied, why_it_cannot_be_is_told) {
  say(frame(1, "error forwarding port 80: connection refused"));
  leave();
  thread.join();
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().text(), "error forwarding port 80: connection refused");
}

// The server may be gone before the client has read anything of it, and sending to it then fails.
class TiedToOneThatLeft : public Tied {
 protected:
  void SetUp() override {
    begin();
    EXPECT_EQ(::send(local.get(), "more", 4, 0), 4);
    ::shutdown(local.get(), SHUT_WR);
  }
  void finish() {
    server.reset();
    start();
    thread.join();
  }
};

TEST_F(TiedToOneThatLeft, its_reason_is_told) {
  say(frame(1, "error forwarding port 80: connection refused"));
  leave();
  finish();
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().text(), "error forwarding port 80: connection refused");
}

TEST_F(TiedToOneThatLeft, its_reason_is_told_without_a_close_frame) {
  say(frame(1, "error forwarding port 80: connection refused"));
  finish();
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().text(), "error forwarding port 80: connection refused");
}

TEST_F(TiedToOneThatLeft, what_the_pod_sent_arrives) {
  const std::string sent(20'000, 'p');  // in several reads
  say(frame(0, sent) + frame(255, std::string(1, '\0')));
  leave();
  finish();
  EXPECT_TRUE(*result);
  EXPECT_EQ(hear(sent.size() + 1), sent);
}

TEST_F(TiedToOneThatLeft, what_the_pod_sent_arrives_before_the_fault_is_told) {
  const std::string sent(20'000, 'p');
  say(frame(0, sent));
  finish();
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Code::unavailable);
  EXPECT_EQ(hear(sent.size() + 1), sent);
}

TEST_F(Tied, a_local_side_that_is_gone_ends_it) {
  local.reset();
  EXPECT_EQ(next_from_client(server), std::string("\xff\0", 2));
  say(frame(0, "to nobody"));
  say(frame(0, "at all"));
  thread.join();
  EXPECT_TRUE(*result);
}

TEST_F(Tied, a_server_that_breaks_off_is_an_error) {
  server.reset();
  thread.join();
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Code::unavailable);
}

TEST_F(Tied, large_amounts_pass_both_ways_at_once) {
  constexpr size_t kBytes = 3 << 20;
  std::jthread sends([&] {
    std::string piece(60'000, 'l');
    for (size_t sent = 0; sent < kBytes; sent += piece.size())
      EXPECT_EQ(::send(local.get(), piece.data(), piece.size(), MSG_NOSIGNAL), ssize_t(piece.size()));
    ::shutdown(local.get(), SHUT_WR);
  });
  std::jthread hears([&] { EXPECT_EQ(hear(kBytes).size(), kBytes); });
  std::jthread says([&] {
    for (size_t said = 0; said < kBytes; said += 50'000) say(frame(0, std::string(50'000, 's')));
  });
  size_t heard = 0;
  for (std::string piece; (piece = next_from_client(server)).size() > 2;) heard += piece.size() - 1;
  EXPECT_GE(heard, kBytes);
  sends.join(), says.join(), hears.join();
  leave();
  local.reset();
  thread.join();
}

}  // namespace
}  // namespace coracle::ctl
