// SPDX-License-Identifier: Apache-2.0
// See stream.h. One loop waits for the input, the socket and signals (window size, interrupts).
#include "ctl/stream.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#include <csignal>

#include "ctl/channels.h"
#include "ctl/command.h"
#include "ctl/send_buffer.h"
#include "ctl/websocket.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle::ctl {
namespace {

enum ProcessChannel : uint8_t { kStdin = 0, kStdout = 1, kStderr = 2, kProcessEnd = 3, kResize = 4 };

class RawTerminal {  // restores the terminal's modes on every return
 public:
  RawTerminal() = default;
  RawTerminal(const RawTerminal&) = delete;
  ~RawTerminal() {
    if (active_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  void enter() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    active_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }

 private:
  termios before_{};
  bool active_ = false;
};

class Conversation {
 public:
  Conversation(Session::Socket& socket, const StreamHandles& ends) : socket_(socket), send_buffer_(socket), ends_(ends) {}

  void send(uint8_t channel, std::string_view bytes) {
    std::string payload(1, char(channel));
    payload.append(bytes);
    send_buffer_.send(Opcode::binary, payload);
  }
  SendBuffer& send_buffer() { return send_buffer_; }

  void send_size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || !size.ws_col) return;
    send(kResize, to_text(json::object{{"Width", size.ws_col}, {"Height", size.ws_row}}));
  }

  // Reads from the socket. Sets end() when the exit status of the process has arrived. False: there is nothing at the moment.
  Result<bool> receive() {
    bool any = false;
    do {
      auto bytes = socket_.read();
      if (!bytes) {
        ended_ = true;
        if (end_.exit_code || end_.failure) return false;
        return bytes.take_error();
      }
      any |= !bytes->empty();
      reader_.feed(*bytes);
      for (;;) {
        std::optional<Message> message = TRY(reader_.next());
        if (!message) break;
        TRY(handle(*message));
      }
    } while (!ended_ && socket_.has_more());
    return any;
  }

  // The server takes nothing more. What it sent before it left has arrived.
  Result<void> receive_the_rest() {
    while (!ended_) {
      bool more = TRY(receive());
      if (more || ended_) continue;
      ended_ = true;
      if (!end_.exit_code && !end_.failure) return *send_buffer_.fault();
    }
    return {};
  }

  bool ended() const { return ended_; }
  const StreamResult& end() const { return end_; }

 private:
  Result<void> handle(const Message& message) {
    if (message.opcode == Opcode::ping) send_buffer_.send(Opcode::pong, message.payload);
    if (message.opcode == Opcode::close) ended_ = true;
    if (!is_data(message.opcode) || message.payload.empty()) return {};
    std::string_view bytes = std::string_view(message.payload).substr(1);
    switch (uint8_t(message.payload[0])) {
      case kStdout:
        if (ends_.on_stdout) return ends_.on_stdout(bytes);
        out(bytes);
        break;
      case kStderr:
        if (ends_.on_stderr) return ends_.on_stderr(bytes);
        std::fwrite(bytes.data(), 1, bytes.size(), stderr);
        break;
      case kProcessEnd:
        if (!bytes.empty()) end_ = read_stream_end(bytes);
        break;
      default: break;
    }
    return {};
  }

  Session::Socket& socket_;
  SendBuffer send_buffer_;
  const StreamHandles& ends_;
  MessageReader reader_;
  StreamResult end_;
  bool ended_ = false;
};

// Blocks the signals that the stream handles during its lifetime, so that they only arrive at the signalfd.
class Signals {
 public:
  Signals(bool window, bool interrupts) {
    sigset_t wanted;
    ::sigemptyset(&wanted);
    if (window) ::sigaddset(&wanted, SIGWINCH);
    if (interrupts) ::sigaddset(&wanted, SIGINT), ::sigaddset(&wanted, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
    fd_ = Fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  int fd() const { return fd_.get(); }
  int next() {  // 0: no signal
    signalfd_siginfo info;
    return ::read(fd_.get(), &info, sizeof info) == sizeof info ? int(info.ssi_signo) : 0;
  }

 private:
  Fd fd_;
  sigset_t before_{};
};

}  // namespace

StreamResult read_stream_end(std::string_view text) {
  StreamResult end;
  auto parsed = parse_json(text);
  view::Status status(parsed ? &*parsed : nullptr);
  if (!parsed) {
    end.failure = Error(Code::internal, std::string(text));
  } else if (status.status() == "Success") {
    end.exit_code = 0;
  } else if (status.reason() == "NonZeroExitCode") {
    end.exit_code = 1;
    for (view::StatusCause cause : status.details().causes())
      if (cause.reason() == "ExitCode") end.exit_code = parse_number<int>(cause.message()).value_or(1);
  } else {
    std::string message(status.message());
    end.failure = Error(Code::internal, message.empty() ? std::string(text) : message);
  }
  return end;
}

Result<std::unique_ptr<Session::Socket>> open_stream(Session& session, const StreamRequest& request) {
  Request sent{
      .path = session.path(schema::catalog().of(kPod), request.ns, request.pod, request.command.empty() ? "attach" : "exec")};
  for (const auto& word : request.command) sent.query.emplace_back("command", word);
  sent.query.emplace_back("container", request.container);
  if (request.use_stdin) sent.query.emplace_back("stdin", "true");
  sent.query.emplace_back("stdout", "true");
  if (request.tty) sent.query.emplace_back("tty", "true");
  else sent.query.emplace_back("stderr", "true");
  return session.upgrade(sent, kChannelProtocol);
}

// The server has no reason in the field of that name for it: these are the words of the node agent and of the runtime.
bool has_come_too_late(const Error& why) {
  const std::string text = why.text();
  return text.find("container not found") != text.npos || text.find("the container is not running") != text.npos;
}

Result<std::string> parse_detach_keys(const std::string& keys) {
  std::string bytes;
  for (std::string_view key : split(keys, ',')) {
    constexpr std::string_view kControl = "ctrl-";
    char letter = key.empty() ? '\0' : key.back();
    if (key.size() == 1) {
      bytes += letter;
    } else if (key.starts_with(kControl) && key.size() == kControl.size() + 1 &&
               ((letter >= 'a' && letter <= 'z') || (letter >= '@' && letter <= '_'))) {
      bytes += char(letter & 0x1f);
    } else {
      return Error(Code::bad_request, "could not bind detach keys: Unknown character: '" + std::string(key) + "'");
    }
  }
  return bytes;
}

std::string DetachKeys::pass(std::string_view typed) {
  if (keys_.empty()) return std::string(typed);
  std::string passed;
  for (char c : typed) {
    if (c == keys_[seen_]) {
      detached_ = ++seen_ == keys_.size();
      if (detached_) return passed;
      continue;
    }
    passed += keys_.substr(0, seen_);  // it was not the keys
    seen_ = c == keys_.front() ? 1 : 0;
    if (seen_ == 0) passed += c;
  }
  return passed;
}

Result<int> run_stream(Session::Socket& socket, const StreamRequest& request, const StreamHandles& ends) {
  Conversation conversation(socket, ends);
  RawTerminal terminal;
  if (request.tty && request.use_stdin) terminal.enter();
  Signals signals(request.tty, ends.interruptible);
  if (request.tty) conversation.send_size();
  bool reading = request.use_stdin;
  DetachKeys detach_keys(ends.detach_keys);
  TRY(conversation.receive());  // data that came with the response to the upgrade
  while (!conversation.ended()) {
    bool takes = reading && !conversation.send_buffer().full();
    pollfd waits[] = {
        {socket.fd(), conversation.send_buffer().events(), 0}, {takes ? ends.input : -1, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    if (::poll(waits, 3, -1) < 0 && errno != EINTR) return Error::from_errno("poll");
    if (waits[0].revents & POLLOUT) conversation.send_buffer().flush();
    if (waits[0].revents & ~POLLOUT) TRY(conversation.receive());
    if (waits[1].revents && !conversation.ended()) {
      char buffer[16384];
      ssize_t got = ::read(ends.input, buffer, sizeof buffer);
      if (got > 0) {
        std::string typed = detach_keys.pass(std::string_view(buffer, size_t(got)));
        if (!typed.empty()) conversation.send(kStdin, typed);
        if (detach_keys.detached()) return 0;
      } else {
        reading = false;
        // On a terminal, the end of input is the character ^D. Closing stdin would hang up before all output is printed.
        if (request.tty) conversation.send(kStdin, "\x04");
        else conversation.send(kCloseChannel, std::string_view("\0", 1));  // v5: closes the channel stdin
      }
    }
    while (int signal = waits[2].revents ? signals.next() : 0) {
      if (signal != SIGWINCH) return 128 + signal;
      conversation.send_size();
    }
    if (conversation.send_buffer().fault()) TRY(conversation.receive_the_rest());
  }
  std::fflush(stderr);
  const StreamResult& end = conversation.end();
  if (end.failure) return *end.failure;
  if (!end.exit_code) return Error(Code::unavailable, "the connection ended before the process did");
  return *end.exit_code;
}

}  // namespace coracle::ctl
