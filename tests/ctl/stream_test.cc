// SPDX-License-Identifier: Apache-2.0
// A stream to a process in a container; the test is the server at the other end of a socket.
#include "ctl/stream.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/sys/file.h"
#include "tests/ctl/pair_socket.h"

namespace coracle::ctl {
namespace {

struct Talk {
  Talk() {
    auto pair = sys::make_socketpair(SOCK_STREAM);
    client = std::make_unique<PairSocket>(std::move(pair->first));
    server = std::move(pair->second);
    ends.on_stdout = [this](std::string_view bytes) -> Result<void> { return stdout_text.append(bytes), Result<void>(); };
    ends.on_stderr = [this](std::string_view bytes) -> Result<void> { return stderr_text.append(bytes), Result<void>(); };
  }
  void say(const std::string& bytes) { ASSERT_EQ(::send(server.get(), bytes.data(), bytes.size(), 0), ssize_t(bytes.size())); }
  std::unique_ptr<PairSocket> client;
  Fd server;
  StreamHandles ends;
  std::string stdout_text, stderr_text;
};

constexpr const char* kExit3 =
    R"({"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}})";

TEST(Stream, sorts_channels_and_gives_the_exit_code) {
  Talk talk_;
  talk_.say(frame(1, "") + frame(1, "out ") + frame(2, "err") + frame(1, std::string(300, 'x')) + frame(3, kExit3) +
            std::string("\x88\x00", 2));
  auto code = run_stream(*talk_.client, {.pod = "p", .command = {"x"}}, talk_.ends);
  ASSERT_TRUE(code) << code.error().text();
  EXPECT_EQ(*code, 3);
  EXPECT_EQ(talk_.stdout_text, "out " + std::string(300, 'x'));
  EXPECT_EQ(talk_.stderr_text, "err");
}

TEST(Stream, sends_its_input_and_its_end) {
  Talk talk_;
  auto pipe = sys::make_pipe();
  ASSERT_TRUE(sys::write_all(pipe->write, "hello"));
  pipe->write.reset();
  talk_.ends.input = pipe->read.get();
  std::string first, second;
  std::jthread server([&] {
    first = next_from_client(talk_.server);
    second = next_from_client(talk_.server);
    talk_.say(frame(3, R"({"status":"Success"})"));
    talk_.server.reset();
  });
  auto code = run_stream(*talk_.client, {.pod = "p", .command = {"cat"}, .use_stdin = true}, talk_.ends);
  server.join();
  EXPECT_EQ(first, std::string("\0hello", 6));
  EXPECT_EQ(second, std::string("\xff\0", 2));
  ASSERT_TRUE(code);
  EXPECT_EQ(*code, 0);
}

TEST(Stream, answers_pings) {
  Talk talk_;
  std::string answer;
  std::jthread server([&] {
    talk_.say(std::string("\x89\x02hi", 4));
    unsigned char bytes[8];
    ASSERT_EQ(::recv(talk_.server.get(), bytes, sizeof bytes, MSG_WAITALL), 8);
    EXPECT_EQ(bytes[0], 0x8a);
    answer = {char(bytes[6] ^ bytes[2]), char(bytes[7] ^ bytes[3])};
    talk_.say(frame(3, R"({"status":"Success"})") + std::string("\x88\x00", 2));
  });
  EXPECT_TRUE(run_stream(*talk_.client, {.pod = "p", .command = {"x"}}, talk_.ends));
  server.join();
  EXPECT_EQ(answer, "hi");
}

TEST(Stream, knows_that_it_has_come_too_late) {
  EXPECT_TRUE(has_come_too_late(Error(Code::not_found, "unable to upgrade connection: container not found (\"main\")")));
  EXPECT_TRUE(has_come_too_late(Error(Code::conflict, "the container is not running")));
  EXPECT_FALSE(has_come_too_late(Error(Code::forbidden, "pods \"x\" is forbidden")));
}

TEST(Stream, says_when_the_connection_breaks) {
  Talk talk_;
  talk_.say(frame(1, "half"));
  talk_.server.reset();
  auto code = run_stream(*talk_.client, {.pod = "p", .command = {"x"}}, talk_.ends);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code(), Code::unavailable);
  Talk closed;
  closed.say(std::string("\x88\x00", 2));
  code = run_stream(*closed.client, {.pod = "p", .command = {"x"}}, closed.ends);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().text(), "the connection ended before the process did");
}

// As after a pause of the client: the process has ended and the server has left, but input waits to be sent.
TEST(Stream, hears_what_the_server_said_before_it_left) {
  for (bool has_ended : {true, false}) {
    Talk talk_;
    auto pipe = sys::make_pipe();
    ASSERT_TRUE(sys::write_all(pipe->write, "too late"));
    talk_.ends.input = pipe->read.get();
    const std::string printed(20'000, 'o');  // in several reads
    talk_.say(frame(1, printed));
    if (has_ended) talk_.say(frame(3, kExit3) + std::string("\x88\x00", 2));
    talk_.server.reset();
    auto code = run_stream(*talk_.client, {.pod = "p", .command = {"x"}, .use_stdin = true}, talk_.ends);
    EXPECT_EQ(talk_.stdout_text, printed);
    ASSERT_EQ(bool(code), has_ended);
    if (has_ended) EXPECT_EQ(*code, 3);
    else EXPECT_EQ(code.error().code(), Code::unavailable);
  }
}

TEST(Stream, stops_when_its_output_has_nowhere_to_go) {
  Talk talk_;
  talk_.ends.on_stdout = [](std::string_view) -> Result<void> { return Error(Code::internal, "disk full"); };
  talk_.say(frame(1, "x"));
  auto code = run_stream(*talk_.client, {.pod = "p", .command = {"x"}}, talk_.ends);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().text(), "disk full");
}

TEST(StreamResult, is_read_from_the_error_channel) {
  EXPECT_EQ(read_stream_end(R"({"status":"Success"})").exit_code, 0);
  EXPECT_EQ(read_stream_end(kExit3).exit_code, 3);
  EXPECT_EQ(read_stream_end(R"({"status":"Failure","reason":"NonZeroExitCode"})").exit_code, 1);
  EXPECT_EQ(read_stream_end(R"({"status":"Failure","reason":"InternalError","message":"no such program"})").failure->text(),
            "no such program");
  EXPECT_EQ(read_stream_end("plain words").failure->text(), "plain words");
}

TEST(DetachKeysTest, end_what_is_typed) {
  EXPECT_EQ(MUST(parse_detach_keys("ctrl-p,ctrl-q")), "\x10\x11");
  EXPECT_EQ(MUST(parse_detach_keys("a,ctrl-[")), "a\x1b");
  EXPECT_FALSE(parse_detach_keys("ctrl-pp"));
  EXPECT_FALSE(parse_detach_keys("shift-a"));
  DetachKeys keys("\x10\x11");
  EXPECT_EQ(keys.pass("a\x10"), "a");
  EXPECT_EQ(keys.pass("b"),
            "\x10"
            "b");
  EXPECT_EQ(keys.pass("\x10\x10"), "\x10");
  EXPECT_FALSE(keys.detached());
  EXPECT_EQ(keys.pass("\x11rest"), "");
  EXPECT_TRUE(keys.detached());
  EXPECT_EQ(DetachKeys("").pass("x"), "x");
}

}  // namespace
}  // namespace coracle::ctl
