// SPDX-License-Identifier: Apache-2.0
// Exec and attach over a WebSocket, with channels in messages.
//   client ──channel 0 (stdin), 4 (resize), 255 (close)──▶ ExecRun
//   client ◀──channel 1 (stdout), 2 (stderr), 3 (result)── ExecRun
#include "daemon/api/byte_link.h"
#include "daemon/api/byte_queue.h"
#include "daemon/api/exec.h"
#include "daemon/api/exec_run.h"

namespace coracle::api {
namespace {

enum Channel : uint8_t { kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4 };

class ExecChannels : public ExecOutput {
 public:
  ExecChannels(WebSocket& socket, ChannelProtocol protocol) : socket_(socket), protocol_(protocol) {}
  bool write(uint8_t channel, std::string_view bytes) {
    return socket_.send(opcode_of(protocol_), encode_channel(protocol_, channel, bytes));
  }
  bool write_stdout(std::string_view bytes) override { return bytes.empty() || write(kStdout, bytes); }
  bool write_stderr(std::string_view bytes) override { return bytes.empty() || write(kStderr, bytes); }

  void ended(const Result<int>& code) {
    if (std::string text = exec_end_text(protocol_.version, code); !text.empty()) write(kError, text);
    socket_.close();
  }

 private:
  WebSocket& socket_;
  ChannelProtocol protocol_;
};

// The input for the process, and an eventfd that is signalled when some of it was taken.
struct Stdin {
  ByteQueue bytes;
  sys::Wakeup taken;

  std::optional<std::string> read() {
    std::string some = bytes.take();
    taken.signal();
    if (some.empty() && bytes.cut_off()) return std::nullopt;
    return some;
  }
  // Blocks until the queue has space. False: the client has disconnected.
  bool wait_for_space(const Fd& socket) {
    for (;;) {
      taken.clear();
      if (bytes.size() < kBacklogMax) return true;
      if (sys::wait_gone(socket.get(), taken.fd())) return false;
    }
  }
};

void take_input(ExecRun& run, Stdin& input, const ChannelProtocol& protocol, const ChannelBytes& got) {
  if (got.channel == kStdin) {
    (void)input.bytes.put(got.bytes);  // false after the reader has stopped, which is fine
  } else if (got.channel == kResize) {
    (void)apply_size(run, got.bytes);  // malformed sizes are ignored
  } else if (got.channel == kCloseChannel && protocol.version >= 5) {
    if (!got.bytes.empty() && got.bytes[0] == char(kStdin)) input.bytes.end();
  }
}

// Reads until the client disconnects or has answered the close frame.
void read_input(WebSocket& socket, const Fd& connection, ExecRun& run, Stdin& input, const ChannelProtocol& protocol) {
  while (input.wait_for_space(connection)) {
    auto message = socket.receive();
    if (!message || !*message) return;
    auto got = decode_channel(protocol, (*message)->payload);
    if (!got) return socket.close(1002, got.error().text());
    take_input(run, input, protocol, *got);
  }
}

}  // namespace

void run_exec(Call& call, WebSocket& socket, const ExecRequest& request) {
  ChannelProtocol protocol = channel_protocol(socket.protocol()).value_or(ChannelProtocol{1, false});
  Connection& connection = call.exchange.connection;
  connection.set_write_timeout(kStreamTimeout);
  ExecChannels channels(socket, protocol);
  // An empty message on each channel tells the client that it is connected. It is not sent in version 5: client-go may receive it
  // before it has set up its channels and then reports an error.
  for (uint8_t channel : {kStdout, kStderr, kError})
    if (protocol.version < 5 && (channel == kError || (channel == kStdout ? request.use_stdout : request.use_stderr)))
      channels.write(channel, {});
  Stdin input;
  auto read_stdin = request.use_stdin ? std::function<std::optional<std::string>()>([&] { return input.read(); }) : nullptr;
  ExecRun run(call.context.streams, request,
              {channels, read_stdin, [&](const Result<int>& code) { channels.ended(code); }, connection.socket()});
  read_input(socket, connection.socket(), run, input, protocol);
  input.bytes.abandon();
  sys::shut_down(connection.socket());  // wakes blocked writers
}

}  // namespace coracle::api
