// SPDX-License-Identifier: Apache-2.0
// Exec over SPDY, as kubectl before 1.31 uses it: the streams, their content, and the end.
#include "tests/daemon/api/server_fixture.h"
#include "tests/daemon/api/spdy_client.h"

namespace coracle::api {
namespace {

class ExecSpdy : public testing::Test {
 protected:
  void SetUp() override {
    std::string pod = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"main","image":"i"}]}})";
    ASSERT_EQ(client.ask("POST", "/api/v1/namespaces/default/pods", pod).status, 201);
  }
  RawAnswer ask(RawClient& connection, const std::string& query, const std::string& versions) {
    connection.send("POST /api/v1/namespaces/default/pods/p/exec?command=ls&" + query +
                    " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
                    "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" +
                    versions + "\r\n");
    return connection.receive_head();
  }
  static std::string version(std::string_view name) { return "X-Stream-Protocol-Version: " + std::string(name) + "\r\n"; }
  static constexpr const char* kV4 = "v4.channel.k8s.io";

  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

TEST_F(ExecSpdy, carries_output_and_how_it_ended) {
  fixture.streams.exit_code = 3;
  RawClient connection(fixture.port(), &identity);
  RawAnswer head =
      ask(connection, "stdout=true&stderr=true", version("v5.channel.k8s.io") + version(kV4) + version("channel.k8s.io"));
  ASSERT_EQ(head.status, 101);
  EXPECT_EQ(head.header("Upgrade"), "SPDY/3.1");
  EXPECT_EQ(head.header("X-Stream-Protocol-Version"), kV4);
  SpdyClient spdy(connection);
  uint32_t error = spdy.open({{"streamtype", "error"}}), out = spdy.open({{"streamtype", "stdout"}}),
           err = spdy.open({{"streamtype", "stderr"}});
  ASSERT_TRUE(spdy.until_ended(error));
  EXPECT_TRUE(spdy.until_ended(out) && spdy.until_ended(err));
  EXPECT_EQ(spdy.stream(out).bytes, "hello\n");
  EXPECT_EQ(spdy.stream(err).bytes, "oops\n");
  json::value status = MUST(parse_json(spdy.stream(error).bytes));
  EXPECT_EQ(get_string(status, "reason"), "NonZeroExitCode");
  EXPECT_EQ(get_string(get_array(status, "details.causes")[0], "message"), "3");
  EXPECT_TRUE(spdy.until([&] { return spdy.gone_away.has_value(); }));
  connection.close();
  fixture.expect_no_streams();
}

TEST_F(ExecSpdy, is_counted_as_what_was_answered) {
  {
    RawClient connection(fixture.port(), &identity);
    ASSERT_EQ(ask(connection, "stdout=true", version(kV4)).status, 101);
  }
  fixture.expect_no_streams();
  std::string line;
  EXPECT_TRUE(comes_true([&] {
    RawAnswer metrics = client.get("/metrics");
    for (std::string_view each : split(metrics.body, '\n'))
      if (each.starts_with("apiserver_request_total{") && each.find("subresource=\"exec\"") != each.npos) line = each;
    return !line.empty();
  }));
  EXPECT_NE(line.find("code=\"101\""), line.npos) << line;
}

TEST_F(ExecSpdy, each_version_has_its_streams_and_its_words) {
  struct Row {
    const char* version;
    bool resizes;
    const char* failure;
  };
  for (const Row& row : {Row{"v4.channel.k8s.io", true, "\"reason\":\"NonZeroExitCode\""},
                         Row{"v3.channel.k8s.io", true, "command terminated with non-zero exit code"},
                         Row{"v2.channel.k8s.io", false, "command terminated with non-zero exit code"},
                         Row{"channel.k8s.io", false, "command terminated with non-zero"}}) {
    fixture.streams.exit_code = 1;
    RawClient connection(fixture.port(), &identity);
    ASSERT_EQ(ask(connection, "stdout=true&tty=true", version(row.version)).status, 101);
    SpdyClient spdy(connection);
    uint32_t error = spdy.open({{"streamtype", "error"}}), resize = spdy.open({{"streamtype", "resize"}});
    spdy.open({{"streamtype", "stdout"}});  // the last one: with it the process begins, and the connection may end at once
    ASSERT_TRUE(spdy.until_ended(error)) << row.version;
    EXPECT_NE(spdy.stream(error).bytes.find(row.failure), std::string::npos) << spdy.stream(error).bytes;
    EXPECT_TRUE(spdy.until([&] { return spdy.stream(resize).replied || spdy.stream(resize).reset; }));
    EXPECT_EQ(spdy.stream(resize).reset, !row.resizes) << row.version;
    fixture.streams.exit_code = 0;
  }
}

TEST_F(ExecSpdy, takes_input_sizes_and_pings) {
  fixture.streams.echoes = true;
  RawClient connection(fixture.port(), &identity);
  ASSERT_EQ(ask(connection, "stdin=true&stdout=true&tty=true", version(kV4)).status, 101);
  SpdyClient spdy(connection);
  uint32_t error = spdy.open({{"streamtype", "error"}}), in = spdy.open({{"streamtype", "stdin"}}),
           out = spdy.open({{"streamtype", "stdout"}});
  uint32_t resize = spdy.open({{"streamtype", "resize"}});
  spdy.send(spdy::FrameEncoder::ping(7));
  spdy.write(in, "hi");
  ASSERT_TRUE(spdy.until([&] { return spdy.stream(out).bytes == "hi"; }));
  spdy.write(resize, "{\"Width\":80,\"Hei");
  spdy.write(resize, "ght\":24}\n{\"Width\":1,\"Height\":2}");
  ASSERT_TRUE(spdy.until([&] { return spdy.stream(out).bytes == "hi80x241x2"; })) << spdy.stream(out).bytes;
  EXPECT_EQ(spdy.pong, 7u);
  EXPECT_FALSE(spdy.stream(in).ended) << "a client waits for that: it is the end of the process";
  spdy.write(in, "", true);
  ASSERT_TRUE(spdy.until_ended(error));
  EXPECT_EQ(spdy.stream(error).bytes, R"({"metadata":{},"status":"Success"})");
  EXPECT_TRUE(spdy.until_ended(in));
}

TEST_F(ExecSpdy, one_large_frame_goes_both_ways) {
  fixture.streams.echoes = true;
  RawClient connection(fixture.port(), &identity);
  ASSERT_EQ(ask(connection, "stdin=true&stdout=true", version(kV4)).status, 101);
  SpdyClient spdy(connection);
  uint32_t error = spdy.open({{"streamtype", "error"}}), in = spdy.open({{"streamtype", "stdin"}}),
           out = spdy.open({{"streamtype", "stdout"}});
  std::string big;
  for (int i = 0; big.size() < 400'000; i++) big += std::to_string(i) + ",";
  spdy.write(in, big, true);
  ASSERT_TRUE(spdy.until_ended(error));
  EXPECT_EQ(spdy.stream(out).bytes, big);
}

TEST_F(ExecSpdy, a_clients_windows_are_kept) {
  fixture.streams.echoes = true;
  RawClient connection(fixture.port(), &identity);
  ASSERT_EQ(ask(connection, "stdin=true&stdout=true", version(kV4)).status, 101);
  SpdyClient spdy(connection);
  spdy.send(spdy::FrameEncoder::settings({{{spdy::kInitialWindowSize, 10}}}));
  uint32_t error = spdy.open({{"streamtype", "error"}}), in = spdy.open({{"streamtype", "stdin"}}),
           out = spdy.open({{"streamtype", "stdout"}});
  spdy.write(in, "0123456789abcdef");
  ASSERT_TRUE(spdy.until([&] { return spdy.stream(out).bytes.size() >= 10; }));
  spdy.send(spdy::FrameEncoder::ping(1));
  ASSERT_TRUE(spdy.until([&] { return spdy.pong == 1; }));
  EXPECT_EQ(spdy.stream(out).bytes, "0123456789");
  spdy.send(spdy::FrameEncoder::window_update(out, 100));
  ASSERT_TRUE(spdy.until([&] { return spdy.stream(out).bytes.size() >= 16; }));
  EXPECT_EQ(spdy.stream(out).bytes, "0123456789abcdef");
  spdy.send(spdy::FrameEncoder::window_update(error, 1000));
  spdy.write(in, "", true);
  EXPECT_TRUE(spdy.until_ended(error));
}

TEST_F(ExecSpdy, nothing_is_left_when_its_client_leaves) {
  fixture.streams.echoes = true;
  {
    RawClient before(fixture.port(), &identity);
    ASSERT_EQ(ask(before, "stdout=true", version(kV4)).status, 101);  // disconnects before it opens a stream
  }
  fixture.expect_no_streams();
  {
    RawClient connection(fixture.port(), &identity);
    ASSERT_EQ(ask(connection, "stdin=true&stdout=true", version(kV4)).status, 101);
    SpdyClient spdy(connection);
    spdy.open({{"streamtype", "error"}});
    uint32_t in = spdy.open({{"streamtype", "stdin"}}), out = spdy.open({{"streamtype", "stdout"}});
    spdy.write(in, "x");
    ASSERT_TRUE(spdy.until([&] { return spdy.stream(out).bytes == "x"; }));
  }
  fixture.expect_no_streams();
  EXPECT_EQ(fixture.streams.stdin_ends, 0) << "a shell would take it for its user's wish to leave";
}

TEST_F(ExecSpdy, what_is_broken_ends_the_connection) {
  spdy::FrameEncoder encoder;
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), spdy::FrameEncoder::data(9, "x"), encoder.syn_reply({1, {}, false}),
        spdy::FrameEncoder().syn_stream({2, {{"streamtype", "stdout"}}, false, false}),
        spdy::FrameEncoder::window_update(0, 0)}) {
    RawClient connection(fixture.port(), &identity);
    ASSERT_EQ(ask(connection, "stdout=true", version(kV4)).status, 101);
    SpdyClient spdy(connection);
    spdy.send(bytes);
    EXPECT_TRUE(spdy.until_end());
    EXPECT_EQ(spdy.gone_away, uint32_t(spdy::GoAwayStatus::protocol_error));
  }
  fixture.expect_no_streams();
}

TEST_F(ExecSpdy, streams_that_nobody_asked_for_are_refused) {
  RawClient connection(fixture.port(), &identity);
  ASSERT_EQ(ask(connection, "stdout=true", version(kV4)).status, 101);
  SpdyClient spdy(connection);
  for (const char* type : {"stdin", "", "resize"}) {
    uint32_t stream = spdy.open({{"streamtype", type}});
    ASSERT_TRUE(spdy.until([&] { return spdy.stream(stream).reset || spdy.stream(stream).replied; }));
    EXPECT_TRUE(spdy.stream(stream).reset) << type;
  }
  uint32_t first = spdy.open({{"streamtype", "stdout"}}), second = spdy.open({{"streamtype", "stdout"}});
  ASSERT_TRUE(spdy.until([&] { return spdy.stream(second).reset; }));
  EXPECT_TRUE(spdy.stream(first).replied);
}

TEST_F(ExecSpdy, versions_are_negotiated) {
  RawClient none(fixture.port(), &identity);
  RawAnswer refused = client.ask("POST", "/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=1", "",
                                 "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" + version("v9.channel.k8s.io"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body,
            "unable to upgrade: unable to negotiate protocol: client supports [v9.channel.k8s.io], server accepts "
            "[v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]\n");
  EXPECT_EQ(refused.header("X-Accepted-Stream-Protocol-Versions"), "v4.channel.k8s.io");
  RawAnswer silent = none.ask("POST", "/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=1", "",
                              "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n");
  EXPECT_EQ(silent.status, 400);
  EXPECT_EQ(get_string(silent.json(), "message"), "unable to upgrade: X-Stream-Protocol-Version is required");
}

}  // namespace
}  // namespace coracle::api
