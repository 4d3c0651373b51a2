// SPDX-License-Identifier: Apache-2.0
// Exec and attach over WebSocket. Two threads for the life of one: this one reads what the client sends, another waits for
// the process and then says how it ended; output comes from the node's threads.
//   client ──channel 0 (stdin), 4 (resize), 255 (close)──▶ ExecSession
//   client ◀──channel 1 (stdout), 2 (stderr), 3 (how it ended)── node
// Source: apimachinery util/remotecommand; KEP-4006 (version 5 over WebSocket).
#include <memory>
#include <thread>

#include "daemon/api/handlers.h"
#include "daemon/api/pods.h"
#include "daemon/api/websocket.h"
#include "runtime/base/guarded.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

enum Channel : uint8_t { kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4, kCloseChannel = 255 };
constexpr std::chrono::seconds kGoodbye{5};  // for the client to close after we did

json::value exit_status(int code) {
  if (code == 0) return json::object{{"metadata", json::object()}, {"status", "Success"}};
  json::object cause{{"reason", "ExitCode"}, {"message", std::to_string(code)}};
  return json::object{{"metadata", json::object()},
                      {"status", "Failure"},
                      {"message", "command terminated with non-zero exit code: exit status " + std::to_string(code)},
                      {"reason", "NonZeroExitCode"},
                      {"details", json::object{{"causes", json::array{std::move(cause)}}}}};
}

Result<ExecRequest> read_request(Call& call) {
  const Query& query = call.query();
  bool attach = call.route.subresource == "attach";
  ExecRequest request;
  request.pod = call.key();
  ObjectPtr pod = TRY(call.house.registry.get(kPod, request.pod));
  std::string_view asked = query.get("container");
  if (asked.empty() && !get_array(pod->json(), "spec.containers").empty())
    asked = get_string(get_array(pod->json(), "spec.containers")[0], "name");
  request.container = TRY(choose_container(*pod, asked));
  request.tty = query.flag("tty");
  request.use_stdin = query.flag("stdin"), request.use_stdout = query.flag("stdout");
  request.use_stderr = query.flag("stderr") && !request.tty;
  for (std::string_view word : query.all("command")) request.command.emplace_back(word);
  if (attach) request.command.clear();
  if (!attach && request.command.empty()) return bad_request("you must specify at least one command for the container");
  if (!request.use_stdin && !request.use_stdout && !request.use_stderr)
    return bad_request("you must specify at least 1 of stdin, stdout, stderr");
  std::string_view phase = get_string(pod->json(), "status.phase");
  if (phase == "Succeeded" || phase == "Failed")
    return bad_request("cannot exec into a container in a completed pod; current phase is " + std::string(phase));
  if (get_string(pod->json(), "spec.nodeName").empty())
    return bad_request("pod " + pod->name() + " does not have a host assigned");
  return request;
}

class Channels : public ExecOutput {
 public:
  Channels(WebSocket& socket, ChannelProtocol protocol) : socket_(socket), protocol_(protocol) {}
  bool write(uint8_t channel, std::string_view bytes) {
    return socket_.send(opcode_of(protocol_), encode_channel(protocol_, channel, bytes));
  }
  bool write_stdout(std::string_view bytes) override { return bytes.empty() || write(kStdout, bytes); }
  bool write_stderr(std::string_view bytes) override { return bytes.empty() || write(kStderr, bytes); }

  // Before version 4 the error channel is plain text, and silent when all went well.
  void ended(const Result<int>& code) {
    if (protocol_.version >= 4) {
      json::value status = code ? exit_status(*code) : to_status(code.error());
      write(kError, to_text(status));
    } else if (!code) {
      write(kError, code.error().text());
    } else if (*code != 0) {
      write(kError, "command terminated with exit code " + std::to_string(*code));
    }
    socket_.close();
  }

 private:
  WebSocket& socket_;
  ChannelProtocol protocol_;
};

void take_input(ExecSession& session, const ChannelProtocol& protocol, const ChannelBytes& input) {
  if (input.channel == kStdin) {
    if (!input.bytes.empty()) (void)session.write_stdin(input.bytes);  // it does not read any more: its end will tell
  } else if (input.channel == kResize) {
    auto size = parse_json(input.bytes);
    if (size) session.resize(uint16_t(get_int(*size, "Width")), uint16_t(get_int(*size, "Height")));
  } else if (input.channel == kCloseChannel && protocol.version >= 5) {
    if (!input.bytes.empty() && input.bytes[0] == char(kStdin)) session.close_stdin();
  }
}

// Until the client leaves, or has answered our goodbye.
void read_input(WebSocket& socket, ExecSession& session, const ChannelProtocol& protocol) {
  for (;;) {
    auto message = socket.receive();
    if (!message || !*message) return;
    auto input = decode_channel(protocol, (*message)->payload);
    if (!input) return socket.close(1002, input.error().text());
    take_input(session, protocol, *input);
  }
}

void run(Call& call, WebSocket& socket, const ExecRequest& request) {
  ChannelProtocol protocol = channel_protocol(socket.protocol()).value_or(ChannelProtocol{1, false});
  Channels channels(socket, protocol);
  for (uint8_t channel : {kStdout, kStderr, kError})  // so that a client sees at once that it is connected
    if (channel == kError || (channel == kStdout ? request.use_stdout : request.use_stderr)) channels.write(channel, {});
  auto session = call.house.streams.exec(request, channels);
  if (!session) return channels.ended(session.take_error());

  Guarded<bool> reading(true);
  std::jthread waiter([&] {
    channels.ended((*session)->wait());
    bool hurried = reading.wait_until(
        {}, std::chrono::steady_clock::now() + kGoodbye, [](bool still) { return !still; }, [](bool still) { return still; });
    if (hurried) sys::shut_down(call.exchange.connection.socket());  // wakes the reader
  });
  read_input(socket, **session, protocol);
  reading.with([](bool& still) { still = false; });
  reading.notify();
  (*session)->hang_up();  // then the waiter returns, and only then the session may go
}

Result<void> exec(Call& call) {
  ExecRequest request = TRY(read_request(call));
  if (!asks_for_websocket(call.head())) {
    if (names_token(call.head().headers.get("Upgrade"), "SPDY/3.1"))
      return bad_request("SPDY is not spoken here; use a client that speaks WebSocket (kubectl 1.31 and newer, coraclectl)");
    return bad_request("Upgrade request required");
  }
  WebSocket socket = TRY(WebSocket::accept(call.exchange, {"v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io",
                                                           "channel.k8s.io", "base64.channel.k8s.io", ""}));
  run(call, socket, request);
  return {};
}

}  // namespace

void serve_exec(Call& call) { answer_with(call, exec(call)); }

}  // namespace coracle::api
