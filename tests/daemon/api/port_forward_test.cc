// SPDX-License-Identifier: Apache-2.0
// Port-forward: how streams and channels are paired, and the data in each of the three protocols, to a server on this machine.
#include <thread>

#include "daemon/api/port_forward_pairs.h"
#include "daemon/api/websocket.h"
#include "runtime/sys/socket.h"
#include "tests/closed_port.h"
#include "tests/daemon/api/server_fixture.h"
#include "tests/daemon/api/spdy_client.h"

namespace coracle::api {
namespace {

TEST(StreamPairs, come_together_by_what_they_were_asked_for) {
  StreamPairs pairs;
  SteadyTime now{};
  auto stream = [](uint32_t id, const char* type, const char* request) {
    return MUST(read_forward_stream(id, type, "80", request));
  };
  EXPECT_FALSE(pairs.add(1, stream(1, "error", "0"), now).complete);
  EXPECT_FALSE(pairs.add(3, stream(3, "error", "1"), now).complete);
  auto second = pairs.add(5, stream(5, "data", "1"), now).complete;
  ASSERT_TRUE(second);
  EXPECT_EQ(second->error, 3u);
  EXPECT_EQ(second->data, 5u);
  EXPECT_EQ(second->port, 80);
  auto first = pairs.add(7, stream(7, "data", "0"), now).complete;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->error, 1u);
  EXPECT_TRUE(pairs.take_overdue(now + std::chrono::hours(1), std::chrono::seconds(30)).empty());
}

TEST(StreamPairs, of_clients_that_name_no_request_follow_each_other) {
  StreamPairs pairs;
  SteadyTime now{};
  auto stream = [](uint32_t id, const char* type) { return MUST(read_forward_stream(id, type, "80", "")); };
  EXPECT_FALSE(pairs.add(1, stream(1, "error"), now).complete);
  EXPECT_TRUE(pairs.add(3, stream(3, "data"), now).complete);
  EXPECT_FALSE(pairs.add(5, stream(5, "error"), now).complete);
  EXPECT_FALSE(pairs.add(9, stream(9, "data"), now).complete);
}

TEST(StreamPairs, a_second_of_one_kind_is_told_on_the_error_stream) {
  StreamPairs pairs;
  SteadyTime now{};
  ForwardStream error = MUST(read_forward_stream(1, "error", "80", "0"));
  (void)pairs.add(1, error, now);
  auto added = pairs.add(3, error, now);
  EXPECT_EQ(added.trouble, "error processing stream for request 0: error stream already assigned");
  EXPECT_EQ(added.error_stream, 1u);
}

TEST(StreamPairs, that_do_not_become_whole_are_given_up) {
  StreamPairs pairs;
  SteadyTime now{};
  (void)pairs.add(1, MUST(read_forward_stream(1, "error", "80", "0")), now);
  EXPECT_TRUE(pairs.take_overdue(now + std::chrono::seconds(29), std::chrono::seconds(30)).empty());
  auto late = pairs.take_overdue(now + std::chrono::seconds(30), std::chrono::seconds(30));
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].error, 1u);
  EXPECT_TRUE(pairs.take_overdue(now + std::chrono::hours(1), std::chrono::seconds(30)).empty());
}

TEST(ForwardStreams, must_say_what_they_are) {
  struct Row {
    const char *type, *port, *want;
  };
  for (const Row& row :
       {Row{"data", "", "\"port\" header is required"}, Row{"data", "http", "unable to parse \"http\" as a port"},
        Row{"data", "65536", "unable to parse \"65536\" as a port"}, Row{"data", "0", "port \"0\" must be > 0"},
        Row{"", "80", "\"streamType\" header is required"}, Row{"stdin", "80", "invalid stream type \"stdin\""}}) {
    auto read = read_forward_stream(1, row.type, row.port, "0");
    ASSERT_FALSE(read) << row.want;
    EXPECT_EQ(read.error().text(), row.want);
  }
}

TEST(Channels, begin_with_their_port) { EXPECT_EQ(port_greeting(8080), "\x90\x1f"); }

// The server in the pod: it passes each connection to `serve`, each on a thread of its own.
class PodServer {
 public:
  explicit PodServer(std::function<void(Fd)> serve) : listener_(MUST(sys::listen_tcp("127.0.0.1", 0))) {
    thread_ = std::jthread([this, serve](std::stop_token stop) {
      std::vector<std::jthread> serving;
      while (!stop.stop_requested()) {
        (void)sys::wait_ready(listener_.get(), true, false, wakeup_.fd(), std::nullopt);
        Fd socket(::accept(listener_.get(), nullptr, nullptr));
        if (socket) serving.emplace_back([serve, fd = std::make_shared<Fd>(std::move(socket))] { serve(std::move(*fd)); });
      }
    });
  }
  ~PodServer() {
    thread_.request_stop();
    wakeup_.signal();
  }
  uint16_t port() const { return sys::local_endpoint(listener_).port; }
  std::string text() const { return std::to_string(port()); }

 private:
  Fd listener_;
  sys::Wakeup wakeup_;
  std::jthread thread_;
};

std::string read_to_end(const Fd& socket) {
  std::string all;
  char buffer[4096];
  for (ssize_t count; (count = ::read(socket.get(), buffer, sizeof buffer)) > 0;) all.append(buffer, size_t(count));
  return all;
}
void say(const Fd& socket, std::string_view text) { EXPECT_TRUE(sys::send_all(socket, text, -1)); }

void echo(Fd socket) {
  char buffer[4096];
  for (ssize_t count; (count = ::read(socket.get(), buffer, sizeof buffer)) > 0;) say(socket, {buffer, size_t(count)});
}
void count_behind_the_end(Fd socket) { say(socket, std::to_string(read_to_end(socket).size()) + " bytes"); }

class PortForward : public testing::Test {
 protected:
  void SetUp() override {
    std::string pods = "/api/v1/namespaces/default/pods";
    ASSERT_EQ(
        client
            .ask("POST", pods, R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"main","image":"i"}]}})")
            .status,
        201);
    ASSERT_EQ(
        client.ask("POST", pods, R"({"metadata":{"name":"nowhere"},"spec":{"containers":[{"name":"main","image":"i"}]}})").status,
        201);
  }
  static constexpr const char* kPath = "/api/v1/namespaces/default/pods/p/portforward";
  static constexpr const char* kSpdy =
      "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n";

  std::unique_ptr<RawClient> streams() {
    auto connection = std::make_unique<RawClient>(fixture.port(), &identity);
    connection->send(std::string("POST ") + kPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n" + kSpdy + "\r\n");
    RawAnswer head = connection->receive_head();
    EXPECT_EQ(head.status, 101);
    EXPECT_EQ(head.header("X-Stream-Protocol-Version"), "portforward.k8s.io");
    return connection;
  }
  std::unique_ptr<RawClient> socket(const std::string& target, const std::string& protocol, int want = 101) {
    auto connection = std::make_unique<RawClient>(fixture.port(), &identity);
    connection->send("GET " + target +
                     " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                     (protocol.empty() ? "" : "Sec-WebSocket-Protocol: " + protocol + "\r\n") + "\r\n");
    RawAnswer head = connection->receive_head();
    EXPECT_EQ(head.status, want);
    if (want == 101) {
      EXPECT_EQ(head.header("Sec-WebSocket-Protocol"), protocol);
    }
    return connection;
  }
  struct Pair {
    uint32_t error, data;
  };
  static Pair open(SpdyClient& spdy, const std::string& port, const std::string& request) {
    uint32_t error = spdy.open({{"streamtype", "error"}, {"port", port}, {"requestid", request}}, true);
    return {error, spdy.open({{"streamtype", "data"}, {"port", port}, {"requestid", request}})};
  }

  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

TEST_F(PortForward, streams_carry_many_connections_at_once) {
  PodServer server(echo);
  auto connection = streams();
  SpdyClient spdy(*connection);
  std::vector<Pair> pairs;
  for (int i = 0; i < 20; i++) pairs.push_back(open(spdy, server.text(), std::to_string(i)));
  for (int i = 0; i < 20; i++) spdy.write(pairs[size_t(i)].data, "this is " + std::to_string(i));
  for (int i = 0; i < 20; i++) {
    std::string want = "this is " + std::to_string(i);
    ASSERT_TRUE(spdy.until([&] { return spdy.stream(pairs[size_t(i)].data).bytes == want; })) << i;
  }
  for (const Pair& pair : pairs) spdy.write(pair.data, "", true);
  for (const Pair& pair : pairs) {
    EXPECT_TRUE(spdy.until_ended(pair.data) && spdy.until_ended(pair.error));
    EXPECT_EQ(spdy.stream(pair.error).bytes, "");
  }
}

TEST_F(PortForward, a_clients_end_is_carried_and_the_answer_still_comes) {
  PodServer server(count_behind_the_end);
  auto connection = streams();
  SpdyClient spdy(*connection);
  Pair pair = open(spdy, server.text(), "0");
  spdy.write(pair.data, std::string(100'000, 'x'), true);
  ASSERT_TRUE(spdy.until_ended(pair.error));
  EXPECT_EQ(spdy.stream(pair.data).bytes, "100000 bytes");
  EXPECT_TRUE(spdy.stream(pair.data).ended);
}

TEST_F(PortForward, a_pods_end_is_told_though_the_client_says_nothing) {
  PodServer server([](Fd socket) { say(socket, "bye"); });
  auto connection = streams();
  SpdyClient spdy(*connection);
  Pair pair = open(spdy, server.text(), "0");
  ASSERT_TRUE(spdy.until_ended(pair.data));
  EXPECT_EQ(spdy.stream(pair.data).bytes, "bye");
  EXPECT_TRUE(spdy.until_ended(pair.error));
}

TEST_F(PortForward, a_refused_port_is_told_and_the_connection_goes_on) {
  const ClosedPort closed;
  PodServer server(echo);
  auto connection = streams();
  SpdyClient spdy(*connection);
  Pair refused = open(spdy, closed.text(), "0");
  ASSERT_TRUE(spdy.until_ended(refused.error));
  const std::string& why = spdy.stream(refused.error).bytes;
  EXPECT_TRUE(why.starts_with("error forwarding port " + closed.text() + " to pod p, uid ")) << why;
  EXPECT_TRUE(why.ends_with("connection refused")) << why;
  Pair pair = open(spdy, server.text(), "1");
  spdy.write(pair.data, "still here", true);
  ASSERT_TRUE(spdy.until_ended(pair.data));
  EXPECT_EQ(spdy.stream(pair.data).bytes, "still here");
}

TEST_F(PortForward, streams_that_say_nothing_of_use_are_refused) {
  auto connection = streams();
  SpdyClient spdy(*connection);
  for (const spdy::HeaderList& headers :
       {spdy::HeaderList{{"streamtype", "data"}}, {{"streamtype", "stdin"}, {"port", "80"}}, {{"port", "80"}}}) {
    uint32_t stream = spdy.open(headers);
    ASSERT_TRUE(spdy.until([&] { return spdy.stream(stream).reset || spdy.stream(stream).replied; }));
    EXPECT_TRUE(spdy.stream(stream).reset);
  }
  uint32_t first = spdy.open({{"streamtype", "error"}, {"port", "80"}, {"requestid", "1"}});
  uint32_t second = spdy.open({{"streamtype", "error"}, {"port", "80"}, {"requestid", "1"}});
  ASSERT_TRUE(spdy.until([&] { return spdy.stream(second).reset; }));
  EXPECT_TRUE(spdy.until([&] { return !spdy.stream(first).bytes.empty(); }));
}

TEST_F(PortForward, no_more_than_so_many_streams_are_open_at_once) {
  auto connection = streams();
  SpdyClient spdy(*connection);
  std::vector<uint32_t> ids;
  for (int i = 0; i < 300; i++)
    ids.push_back(spdy.open({{"streamtype", "error"}, {"port", "80"}, {"requestid", std::to_string(i)}}));
  ASSERT_TRUE(spdy.until([&] { return spdy.stream(ids.back()).reset || spdy.stream(ids.back()).replied; }));
  auto refused = std::count_if(ids.begin(), ids.end(), [&](uint32_t id) { return spdy.stream(id).reset; });
  EXPECT_EQ(refused, 300 - 256);
}

TEST_F(PortForward, a_pod_that_does_not_read_stops_its_client_and_leaves_with_it) {
  Guarded<bool> leave(false);
  PodServer server([&](Fd) {
    leave.wait(
        {}, [](bool yes) { return yes; }, [](bool) {});
  });
  auto connection = streams();
  auto spdy = std::make_unique<SpdyClient>(*connection);
  Pair pair = open(*spdy, server.text(), "0");
  ASSERT_TRUE(spdy->until([&] { return spdy->stream(pair.data).replied; }));
  // More than the buffers of the kernel and of the server hold, so the writer blocks. The client is killed meanwhile.
  std::atomic<size_t> sent = 0;
  std::string piece = spdy::FrameEncoder::data(pair.data, std::string(64 << 10, 'x'));
  int fd = connection->descriptor();
  std::jthread sender([&] {
    while (connection->send(piece)) sent += piece.size();
  });
  while (sent == 0 || sys::wait_ready(fd, false, true, -1, std::chrono::milliseconds(500)).first.writable)
    std::this_thread::yield();
  EXPECT_LT(sent, size_t(64) << 20);
  ::shutdown(fd, SHUT_RDWR);
  sender.join();
  linger linger_not{1, 0};  // as if the client were killed with unread data
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger_not, sizeof linger_not);
  spdy.reset();
  connection.reset();
  fixture.expect_no_streams();
  leave.with([](bool& yes) { yes = true; });
  leave.notify();
}

TEST_F(PortForward, the_tunnel_is_the_same_within_a_websocket) {
  PodServer server(echo);
  auto connection = socket(kPath, "SPDY/3.1+portforward.k8s.io");
  SpdyClient spdy(*connection);
  // The boundaries of messages differ from those of frames.
  spdy.wrap = [](std::string bytes) {
    std::string out;
    for (size_t at = 0; at < bytes.size(); at += 5) out += masked_frame(2, bytes.substr(at, 5));
    return out;
  };
  spdy.receive = [&] {
    for (;;) {
      auto [opcode, payload] = receive_frame(*connection);
      if (opcode == 0 || opcode == 8 || !payload.empty()) return opcode == 2 ? payload : std::string();
    }
  };
  Pair pair = open(spdy, server.text(), "0");
  spdy.write(pair.data, "through the tunnel", true);
  ASSERT_TRUE(spdy.until_ended(pair.data));
  EXPECT_EQ(spdy.stream(pair.data).bytes, "through the tunnel");
  EXPECT_TRUE(spdy.until_ended(pair.error));
  connection.reset();
  fixture.expect_no_streams();
}

TEST_F(PortForward, channels_come_in_pairs_that_begin_with_their_port) {
  PodServer first(echo), second([](Fd socket) { say(socket, "second"); });
  for (const char* protocol : {"v4.channel.k8s.io", "v4.base64.channel.k8s.io", ""}) {
    auto connection = socket(std::string(kPath) + "?ports=" + first.text() + "&ports=" + second.text(), protocol);
    ChannelProtocol codec = *protocol ? *channel_protocol(protocol) : ChannelProtocol{4, false};
    std::map<int, std::string> got;
    auto until = [&](int channel, size_t size) {
      while (got[channel].size() < size) {
        auto [opcode, payload] = receive_frame(*connection);
        if (opcode == 0 || opcode == 8) return false;
        ChannelBytes bytes = MUST(decode_channel(codec, payload));
        got[bytes.channel] += bytes.bytes;
      }
      return true;
    };
    ASSERT_TRUE(until(3, 2));
    connection->send(masked_frame(opcode_of(codec), encode_channel(codec, 0, "ping")));
    ASSERT_TRUE(until(0, 6));
    ASSERT_TRUE(until(2, 8));
    EXPECT_EQ(got[0], port_greeting(first.port()) + "ping");
    EXPECT_EQ(got[1], port_greeting(first.port()));
    EXPECT_EQ(got[2], port_greeting(second.port()) + "second");
    EXPECT_EQ(got[3], port_greeting(second.port()));
  }
  fixture.expect_no_streams();
}

TEST_F(PortForward, channels_of_version_5_carry_both_ends) {
  PodServer server(count_behind_the_end);
  auto connection = socket(std::string(kPath) + "?ports=" + server.text(), "v5.channel.k8s.io");
  connection->send(masked_frame(2, std::string("\0abc", 4)) + masked_frame(2, std::string("\xff\0", 2)));
  std::string all;
  bool ended = false, closed = false;
  while (!closed) {
    auto [opcode, payload] = receive_frame(*connection);
    closed = opcode == 8 || opcode == 0;
    EXPECT_NE(opcode, 0);
    if (!closed && payload[0] == 0) all += payload.substr(1);
    if (!closed && uint8_t(payload[0]) == 255) ended = payload == std::string("\xff\0", 2);
  }
  EXPECT_EQ(all, port_greeting(server.port()) + "3 bytes");
  EXPECT_TRUE(ended);
}

TEST_F(PortForward, that_cannot_be_is_told_before_the_upgrade) {
  auto message = [&](const std::string& path, const std::string& headers) { return client.ask("POST", path, "", headers); };
  EXPECT_EQ(message("/api/v1/namespaces/default/pods/absent/portforward", kSpdy).status, 404);
  RawAnswer nowhere = message("/api/v1/namespaces/default/pods/nowhere/portforward", kSpdy);
  EXPECT_EQ(nowhere.status, 400);
  EXPECT_EQ(get_string(nowhere.json(), "message"), "pod nowhere does not have a host assigned");
  EXPECT_EQ(message(kPath, "").status, 400);
  RawAnswer other = message(kPath, "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v9\r\n");
  EXPECT_EQ(other.status, 403);
  EXPECT_EQ(other.header("X-Accepted-Stream-Protocol-Versions"), "portforward.k8s.io");
  socket(kPath, "v4.channel.k8s.io", 400);  // no port given
  socket(std::string(kPath) + "?ports=0", "v4.channel.k8s.io", 400);
  socket(std::string(kPath) + "?ports=x", "v4.channel.k8s.io", 400);
  socket(std::string(kPath) + "?ports=80", "v9.channel.k8s.io", 400);
}

TEST_F(PortForward, takes_create_by_whatever_method_it_is_asked) {
  std::string role =
      R"({"metadata":{"name":"looks"},"rules":[{"apiGroups":[""],"resources":["pods/portforward","pods/exec"],"verbs":["get"]}]})";
  ASSERT_EQ(client.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role).status, 201);
  std::string binding =
      R"({"metadata":{"name":"looks"},"subjects":[{"kind":"User","name":"someone","apiGroup":"rbac.authorization.k8s.io"}],)"
      R"("roleRef":{"kind":"ClusterRole","name":"looks","apiGroup":"rbac.authorization.k8s.io"}})";
  ASSERT_EQ(client.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).status, 201);
  RawClient someone(fixture.port());
  for (const char* path : {"portforward?ports=80", "exec?command=ls&stdout=1"}) {
    RawAnswer refused = someone.get("/api/v1/namespaces/default/pods/p/" + std::string(path),
                                    "Authorization: Bearer t0ken\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                                    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    EXPECT_EQ(refused.status, 403) << path;
    EXPECT_NE(refused.body.find("cannot create resource"), std::string::npos) << refused.body;
  }
}

}  // namespace
}  // namespace coracle::api
