// SPDX-License-Identifier: Apache-2.0
// Logs, exec, attach and images: the data between a client and the node.
#include <gtest/gtest.h>

#include "daemon/api/websocket.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"
#include "tests/daemon/api/spdy_client.h"

namespace coracle::api {
namespace {

class Streams : public testing::Test {
 protected:
  void SetUp() override {
    std::string pods = "/api/v1/namespaces/default/pods";
    ASSERT_EQ(
        client
            .ask("POST", pods, R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"main","image":"i"}]}})")
            .status,
        201);
    ASSERT_EQ(
        client
            .ask(
                "POST", pods,
                R"({"metadata":{"name":"two"},"spec":{"nodeName":"n","containers":[{"name":"a","image":"i"},{"name":"b","image":"i"}]}})")
            .status,
        201);
  }
  std::unique_ptr<RawClient> upgrade(const std::string& target, const std::string& protocol, int want = 101) {
    auto opened = std::make_unique<RawClient>(fixture.port(), &identity);
    opened->send("GET " + target +
                 " HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                 (protocol.empty() ? "" : "Sec-WebSocket-Protocol: " + protocol + "\r\n") + "\r\n");
    RawAnswer head = opened->receive_head();
    EXPECT_EQ(head.status, want);
    if (want == 101) {
      EXPECT_EQ(head.header("Sec-WebSocket-Protocol"), protocol.substr(0, protocol.find(',')));
    }
    return opened;
  }
  static std::pair<uint8_t, std::string> receive(RawClient& socket) {
    std::string head = socket.receive_exactly(2);
    if (head.size() < 2) return {0, ""};
    size_t size = uint8_t(head[1]);
    if (size == 126) {
      std::string more = socket.receive_exactly(2);
      size = size_t(uint8_t(more[0])) << 8 | uint8_t(more[1]);
    }
    return {uint8_t(head[0] & 15), socket.receive_exactly(size)};
  }
  // All messages until the connection closes, by channel.
  static std::map<int, std::string> collect(RawClient& socket) {
    std::map<int, std::string> out;
    for (;;) {
      auto [opcode, payload] = receive(socket);
      if (opcode == kClose || opcode == 0) {
        socket.send(masked_frame(kClose, payload.substr(0, 2)));
        EXPECT_EQ(opcode, kClose);
        return out;
      }
      out[payload.empty() ? -1 : uint8_t(payload[0])] += payload.substr(std::min<size_t>(1, payload.size()));
    }
  }
  static constexpr const char* kExec = "/api/v1/namespaces/default/pods/p/exec?command=ls&command=-l&stdout=true&stderr=true";

  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

TEST_F(Streams, logs_are_text) {
  RawAnswer log = client.get("/api/v1/namespaces/default/pods/p/log?tailLines=5&timestamps=true&sinceSeconds=60");
  EXPECT_EQ(log.status, 200);
  EXPECT_EQ(log.header("Content-Type"), "text/plain");
  EXPECT_EQ(log.body, "one\ntwo\n");
  EXPECT_EQ(fixture.streams.last_log.container, "main");
  EXPECT_EQ(fixture.streams.last_log.tail_lines, 5);
  EXPECT_TRUE(fixture.streams.last_log.timestamps);
  EXPECT_TRUE(fixture.streams.last_log.since);
}

TEST_F(Streams, a_log_may_be_of_one_stream) {
  std::string log = "/api/v1/namespaces/default/pods/p/log?stream=";
  for (auto [asked, want] :
       {std::pair("Stdout", "stdout"), std::pair("Stderr", "stderr"), std::pair("All", ""), std::pair("", "")}) {
    EXPECT_EQ(client.get(log + asked).status, 200) << asked;
    EXPECT_EQ(fixture.streams.last_log.stream, want) << asked;
  }
  EXPECT_EQ(client.get(log + "All&tailLines=5").status, 200);
  RawAnswer tail = client.get(log + "Stderr&tailLines=5"), unknown = client.get(log + "stderr");
  EXPECT_EQ(tail.status, 422);
  EXPECT_NE(tail.body.find("mutually exclusive"), std::string::npos);
  EXPECT_EQ(unknown.status, 422);
  EXPECT_NE(unknown.body.find("stream: Unsupported value: \\\"stderr\\\""), std::string::npos) << unknown.body;
}

TEST_F(Streams, logs_that_cannot_be_had_are_told) {
  std::string two = "/api/v1/namespaces/default/pods/two/log";
  EXPECT_EQ(get_string(client.get(two).json(), "message"),
            "a container name must be specified for pod two, choose one of: [a b]");
  EXPECT_EQ(get_string(client.get(two + "?container=x").json(), "message"), "container x is not valid for pod two");
  EXPECT_EQ(client.get(two + "?container=b").status, 200);
  EXPECT_EQ(client.get("/api/v1/namespaces/default/pods/absent/log").status, 404);
  EXPECT_EQ(client.get(two + "?container=b&tailLines=-1").status, 422);
  EXPECT_EQ(client.get(two + "?container=b&sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z").status, 422);
  EXPECT_EQ(client.get(two + "?container=b&tailLines=x").status, 400);
  EXPECT_EQ(client.get(two + "?container=b&sinceTime=x").status, 400);
  fixture.streams.log_text.clear();
  RawAnswer waiting = client.get("/api/v1/namespaces/default/pods/p/log");
  EXPECT_EQ(waiting.status, 400);
  EXPECT_NE(waiting.body.find("waiting to start"), std::string::npos);
}

TEST_F(Streams, a_pod_without_a_node_has_an_empty_log) {
  client.ask("POST", "/api/v1/namespaces/default/pods",
             R"({"metadata":{"name":"late"},"spec":{"containers":[{"name":"main","image":"i"}]}})");
  RawAnswer log = client.get("/api/v1/namespaces/default/pods/late/log");
  EXPECT_EQ(log.status, 200);
  EXPECT_EQ(log.body, "");
  EXPECT_EQ(client.get("/api/v1/namespaces/default/pods/late/log?container=x").status, 400);
}

TEST_F(Streams, a_followed_log_ends_when_its_reader_leaves) {
  fixture.streams.follows_for_ever = true;
  {
    RawClient follower(fixture.port(), &identity);
    follower.send("GET /api/v1/namespaces/default/pods/p/log?follow=true HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(follower.receive_head().status, 200);
    EXPECT_EQ(follower.receive_chunk(), "one\ntwo\n");
    EXPECT_EQ(fixture.server->counts().watches, 1);
  }
  fixture.expect_no_streams();
}

TEST_F(Streams, logs_over_websocket_end_with_a_close) {
  auto socket = upgrade("/api/v1/namespaces/default/pods/p/log", "binary.k8s.io");
  EXPECT_EQ(receive(*socket).second, "one\ntwo\n");
  EXPECT_EQ(receive(*socket).first, kClose);
}

TEST_F(Streams, exec_in_each_protocol) {
  for (const char* protocol : {"v5.channel.k8s.io", "v4.channel.k8s.io,channel.k8s.io"}) {
    auto socket = upgrade(kExec, protocol);
    auto got = collect(*socket);
    EXPECT_EQ(got[1], "hello\n") << protocol;
    EXPECT_EQ(got[2], "oops\n");
    EXPECT_EQ(got[3], R"({"metadata":{},"status":"Success"})");
  }
  EXPECT_EQ(fixture.streams.last_exec.command, (std::vector<std::string>{"ls", "-l"}));
  auto oldest = upgrade(kExec, "channel.k8s.io");
  auto got = collect(*oldest);
  EXPECT_EQ(got[1], "hello\n");
  EXPECT_EQ(got[3], "");
  auto text = upgrade(kExec, "base64.channel.k8s.io");
  EXPECT_EQ(collect(*text)['1'], "aGVsbG8K");
}

TEST_F(Streams, exec_greets_only_who_expects_it) {
  fixture.streams.echoes = true;  // exits when its input ends
  for (auto [protocol, greeted] : {std::pair("v5.channel.k8s.io", 0), std::pair("v4.channel.k8s.io", 3)}) {
    auto socket = upgrade(std::string(kExec) + "&stdin=true", protocol);
    int empty = 0;
    socket->send(masked_frame(kBinary, std::string("\0hi", 3)));
    for (std::string payload; payload != "\x01hi"; empty += payload.size() == 1) {
      payload = receive(*socket).second;
      ASSERT_FALSE(payload.empty()) << protocol;
    }
    EXPECT_EQ(empty, greeted) << protocol;
  }
}

TEST_F(Streams, exec_takes_a_long_script) {
  std::string script(300'000, 'x');
  auto socket = upgrade("/api/v1/namespaces/default/pods/p/exec?command=sh&command=-c&command=" + script + "&stdout=true",
                        "v5.channel.k8s.io");
  EXPECT_EQ(collect(*socket)[1], "hello\n");
  EXPECT_EQ(fixture.streams.last_exec.command, (std::vector<std::string>{"sh", "-c", script}));
}

TEST_F(Streams, exec_tells_the_exit_code) {
  fixture.streams.exit_code = 3;
  auto socket = upgrade(kExec, "v5.channel.k8s.io");
  json::value status = MUST(parse_json(collect(*socket)[3]));
  EXPECT_EQ(get_string(status, "reason"), "NonZeroExitCode");
  EXPECT_EQ(get_string(get_array(status, "details.causes")[0], "message"), "3");
}

TEST_F(Streams, exec_takes_input_resizes_and_pings) {
  fixture.streams.echoes = true;
  auto socket = upgrade(std::string(kExec) + "&stdin=true&tty=true", "v5.channel.k8s.io");
  socket->send(masked_frame(kPing, "still there?"));
  socket->send(masked_frame(kBinary, std::string("\0hi", 3)));
  std::string output, pong;
  for (bool resized = false, ended = false;;) {
    auto [opcode, payload] = receive(*socket);
    if (opcode == kPong) pong = payload;
    else if (opcode == kClose || opcode == 0) break;
    else if (!payload.empty() && payload[0] == 1) output += payload.substr(1);
    if (output == "hi" && !std::exchange(resized, true)) socket->send(masked_frame(kBinary, "\x04{\"Width\":80,\"Height\":24}"));
    if (output == "hi80x24" && !std::exchange(ended, true)) socket->send(masked_frame(kBinary, std::string("\xff\0", 2)));
  }
  EXPECT_EQ(pong, "still there?");
  EXPECT_EQ(output, "hi80x24");
}

TEST_F(Streams, exec_hangs_up_when_its_client_leaves) {
  fixture.streams.echoes = true;
  { auto socket = upgrade(std::string(kExec) + "&stdin=true", "v5.channel.k8s.io"); }
  fixture.expect_no_streams();
  EXPECT_EQ(fixture.streams.stdin_ends, 0);
}

TEST_F(Streams, exec_that_cannot_be_is_told_before_the_upgrade) {
  upgrade("/api/v1/namespaces/default/pods/absent/exec?command=ls&stdout=1", "v5.channel.k8s.io", 404);
  upgrade("/api/v1/namespaces/default/pods/p/exec?stdout=1", "v5.channel.k8s.io", 400);
  upgrade("/api/v1/namespaces/default/pods/p/exec?command=ls", "v5.channel.k8s.io", 400);
  upgrade("/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=1&container=x", "v5.channel.k8s.io", 400);
  upgrade(kExec, "v9.channel.k8s.io", 400);
  EXPECT_EQ(client.get(kExec).status, 400);
}

TEST_F(Streams, an_export_that_breaks_off_has_no_end) {
  fixture.images.archive = std::string(100'000, 'a');
  fixture.images.breaks_off = true;
  client.send("GET /coracle/v1/images/export?reference=a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receive_head().status, 200);
  const std::string body = client.receive_exactly(1 << 20);  // until the connection ends
  EXPECT_GT(body.size(), 100'000u);
  EXPECT_EQ(body.find("\r\n0\r\n"), body.npos);
  fixture.images.archive.clear();
  RawClient again(fixture.port(), &identity);
  EXPECT_EQ(again.get("/coracle/v1/images/export?reference=a").status, 500) << "before the first byte it can be told";
}

TEST_F(Streams, volumes_are_exported_and_imported) {
  fixture.volumes.archive = std::string(200'000, 'a');
  RawAnswer exported = client.get("/coracle/v1/volumes/export?namespace=shop&claim=data");
  EXPECT_EQ(exported.body, fixture.volumes.archive);
  EXPECT_EQ(exported.header("Content-Type"), "application/zstd");
  EXPECT_EQ(fixture.volumes.asked, "shop/data");
  EXPECT_EQ(client.get("/coracle/v1/volumes/export?namespace=shop&claim=used").status, 409);
  EXPECT_EQ(client.get("/coracle/v1/volumes/export?namespace=shop&claim=used&inUse=true").status, 200);
  const std::string archive(5 << 20, 'x');  // larger than the limit of an ordinary body
  RawAnswer imported = client.ask("POST", "/coracle/v1/volumes/import?namespace=shop&claim=data", archive);
  EXPECT_EQ(imported.status, 200) << imported.body;
  EXPECT_EQ(get_int(imported.json(), "bytes"), 7);
  EXPECT_EQ(fixture.volumes.imported_bytes, archive.size());
  // The server closes the connection after a refusal that came before the whole body was read.
  EXPECT_EQ(
      RawClient(fixture.port(), &identity).ask("POST", "/coracle/v1/volumes/import?namespace=shop&claim=full", archive).status,
      409);
  EXPECT_EQ(client.ask("POST", "/coracle/v1/volumes/import?namespace=shop&claim=full&replace=true", archive).status, 200);
  EXPECT_EQ(fixture.volumes.asked, "shop/full replaced");
  EXPECT_EQ(client.ask("POST", "/coracle/v1/volumes/import?namespace=shop&claim=data&dryRun=All").status, 400);
  EXPECT_EQ(client.get("/coracle/v1/volumes/export?namespace=shop").status, 400);
  EXPECT_EQ(client.get("/coracle/v1/volumes/export?claim=data").status, 400);
  EXPECT_EQ(client.get("/coracle/v1/volumes/import?namespace=shop&claim=data").status, 405);
  EXPECT_EQ(client.ask("POST", "/coracle/v1/volumes/export?namespace=shop&claim=data").status, 405);
  EXPECT_EQ(client.get("/coracle/v1/volumes").status, 404);
}

TEST_F(Streams, images_are_listed_pulled_imported_and_removed) {
  EXPECT_EQ(get_string(client.get("/coracle/v1/images").json().get_array()[0], "id"), "sha256:1");
  EXPECT_EQ(client.ask("POST", "/coracle/v1/images?reference=busybox").body,
            "{\"progress\":{\"done\":1,\"total\":2}}\n{\"image\":{\"id\":\"sha256:2\"}}\n");
  EXPECT_NE(client.ask("POST", "/coracle/v1/images?reference=missing").body.find("\"reason\":\"NotFound\""), std::string::npos);
  std::string archive(5 << 20, 'x');  // larger than the limit of an ordinary body
  RawAnswer imported = client.ask("POST", "/coracle/v1/images/import?name=a", archive, "Content-Type: application/x-tar\r\n");
  EXPECT_EQ(imported.status, 200) << imported.body;
  EXPECT_EQ(fixture.images.imported_bytes, archive.size());
  EXPECT_EQ(get_string(get_array(imported.json(), "images")[0], "id"), "sha256:3");
  EXPECT_EQ(client
                .ask("POST", "/coracle/v1/images?reference=busybox", R"({"username":"me","password":"p"})",
                     "Content-Type: application/json\r\n")
                .status,
            200);
  EXPECT_EQ(fixture.images.asked, "me:p");
  EXPECT_EQ(get_string(client.ask("POST", "/coracle/v1/images/tag?reference=a&name=b:1").json(), "image.id"), "sha256:4");
  EXPECT_EQ(fixture.images.asked, "a b:1");
  EXPECT_EQ(client.ask("POST", "/coracle/v1/images/tag?reference=a").status, 400);
  EXPECT_EQ(client.ask("GET", "/coracle/v1/images/tag?reference=a&name=b").status, 405);
  EXPECT_EQ(get_string(get_array(client.ask("POST", "/coracle/v1/images/prune").json(), "images")[0], "id"), "sha256:5");
  EXPECT_EQ(get_string(get_array(client.ask("POST", "/coracle/v1/images/prune?all=true").json(), "images")[0], "id"), "sha256:6");
  EXPECT_EQ(client.ask("DELETE", "/coracle/v1/images/prune").status, 405);
  EXPECT_EQ(client.ask("POST", "/coracle/v1/images/push").status, 404);
  fixture.images.archive = std::string(200'000, 'a');
  RawAnswer exported = client.get("/coracle/v1/images/export?reference=a&reference=b");
  EXPECT_EQ(exported.body, fixture.images.archive);
  EXPECT_EQ(exported.header("Content-Type"), "application/x-tar");
  EXPECT_EQ(fixture.images.asked, "a 2");
  EXPECT_EQ(client.get("/coracle/v1/images/export?reference=a&reference=missing").status, 404);
  EXPECT_EQ(client.get("/coracle/v1/images/export").status, 400);
  EXPECT_EQ(client.ask("POST", "/coracle/v1/images/export?reference=a").status, 405);
  EXPECT_EQ(client.ask("DELETE", "/coracle/v1/images?reference=a").status, 200);
  EXPECT_EQ(client.ask("DELETE", "/coracle/v1/images").status, 400);
  EXPECT_EQ(client.ask("PUT", "/coracle/v1/images", "x").status, 405);
}

}  // namespace
}  // namespace coracle::api
