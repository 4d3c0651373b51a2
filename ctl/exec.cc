// SPDX-License-Identifier: Apache-2.0
// exec and attach: a process in a container on this terminal, over one WebSocket with the channels of v5.channel.k8s.io.
//   terminal ──stdin (0), resize (4)──▶ server ──stdout (1), stderr (2), error (3)──▶ terminal
// One loop waits on the terminal, the socket and the window's size. Source: Kubernetes remotecommand; RFC 6455.
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "ctl/command.h"
#include "ctl/pods.h"
#include "ctl/websocket.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

constexpr std::string_view kProtocol = "v5.channel.k8s.io";
enum Channel : uint8_t { kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4, kClose = 255 };

struct ExecFlags {
  std::vector<std::string> args;
  std::string container;
  bool use_stdin = false, tty = false, quiet = false;
};

class RawTerminal {  // the terminal's modes are put back on every way out
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
  Conversation(Session::Socket& socket, bool tty) : socket_(socket), tty_(tty) {}

  Result<void> send(uint8_t channel, std::string_view bytes) {
    std::string payload(1, char(channel));
    payload.append(bytes);
    return socket_.write(encode_frame(Opcode::binary, payload, mask()));
  }

  Result<void> send_size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || !size.ws_col) return {};
    return send(kResize, to_text(json::object{{"Width", size.ws_col}, {"Height", size.ws_row}}));
  }

  // Reads what the socket has. Sets exit_code once the process' end was told.
  Result<void> receive() {
    auto bytes = socket_.read();
    if (!bytes) {
      ended_ = true;
      if (exit_code_) return {};
      return bytes.take_error();
    }
    reader_.feed(*bytes);
    for (;;) {
      std::optional<Message> message = TRY(reader_.next());
      if (!message) return {};
      TRY(handle(*message));
    }
  }

  bool ended() const { return ended_; }
  std::optional<int> exit_code() const { return exit_code_; }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  std::array<uint8_t, 4> mask() {
    uint32_t bits = random_();
    return {uint8_t(bits), uint8_t(bits >> 8), uint8_t(bits >> 16), uint8_t(bits >> 24)};
  }

  Result<void> handle(const Message& message) {
    if (message.opcode == Opcode::ping) return socket_.write(encode_frame(Opcode::pong, message.payload, mask()));
    if (message.opcode == Opcode::close) {
      ended_ = true;
      return {};
    }
    if (message.opcode == Opcode::pong || message.payload.empty()) return {};
    std::string_view bytes = std::string_view(message.payload).substr(1);
    switch (uint8_t(message.payload[0])) {
      case kStdout: out(bytes); break;
      case kStderr: std::fwrite(bytes.data(), 1, bytes.size(), stderr); break;
      case kError: read_status(bytes); break;
      default: break;
    }
    return {};
  }

  void read_status(std::string_view bytes) {
    if (bytes.empty()) return;
    auto status = parse_json(bytes);
    if (!status) {
      failure_ = Error(Code::internal, std::string(bytes));
    } else if (get_string(*status, "status") == "Success") {
      exit_code_ = 0;
    } else if (get_string(*status, "reason") == "NonZeroExitCode") {
      for (const auto& cause : get_array(*status, "details.causes"))
        if (get_string(cause, "reason") == "ExitCode") exit_code_ = parse_number<int>(get_string(cause, "message")).value_or(1);
    } else {
      failure_ = Error(Code::internal, std::string(get_string(*status, "message")));
    }
  }

  Session::Socket& socket_;
  bool tty_;
  MessageReader reader_;
  std::random_device random_;
  std::optional<int> exit_code_;
  std::optional<Error> failure_;
  bool ended_ = false;
};

Result<int> talk(Session::Socket& socket, const ExecFlags& flags) {
  Conversation conversation(socket, flags.tty);
  RawTerminal terminal;
  if (flags.tty && flags.use_stdin) terminal.enter();
  sigset_t window;
  ::sigemptyset(&window);
  ::sigaddset(&window, SIGWINCH);
  ::sigprocmask(SIG_BLOCK, &window, nullptr);
  Fd resized(::signalfd(-1, &window, SFD_CLOEXEC | SFD_NONBLOCK));
  if (flags.tty) TRY(conversation.send_size());
  bool reading = flags.use_stdin;
  TRY(conversation.receive());  // what came with the upgrade's answer
  while (!conversation.ended()) {
    pollfd waits[] = {{socket.fd(), POLLIN, 0}, {reading ? STDIN_FILENO : -1, POLLIN, 0}, {flags.tty ? resized.get() : -1, POLLIN, 0}};
    if (::poll(waits, 3, -1) < 0 && errno != EINTR) return Error::from_errno("poll");
    if (waits[0].revents) TRY(conversation.receive());
    if (waits[1].revents && !conversation.ended()) {
      char buffer[16384];
      ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (got > 0) {
        TRY(conversation.send(kStdin, std::string_view(buffer, size_t(got))));
      } else {
        reading = false;
        TRY(conversation.send(kClose, std::string_view("\0", 1)));  // v5: stdin has ended
      }
    }
    if (waits[2].revents) {
      signalfd_siginfo info;
      while (::read(resized.get(), &info, sizeof info) > 0) {
      }
      TRY(conversation.send_size());
    }
  }
  std::fflush(stderr);
  if (conversation.failure()) return Error(conversation.failure()->code(), conversation.failure()->text());
  if (!conversation.exit_code()) return Error(Code::unavailable, "the connection ended before the process did");
  if (*conversation.exit_code() != 0) std::fprintf(stderr, "command terminated with exit code %d\n", *conversation.exit_code());
  return *conversation.exit_code();
}

Result<int> run(Commands& commands, ExecFlags flags, bool attach) {
  Session* session = TRY(commands.session());
  std::vector<std::string> command;
  size_t named = flags.args.size() > 1 && flags.args[0].find('/') == std::string::npos && attach && schema::catalog().by_name(flags.args[0]) ? 2 : 1;
  if (!attach) {
    flags.args.insert(flags.args.end(), commands.rest().begin(), commands.rest().end());
    if (flags.args.size() < 2) return Error(Code::bad_request, "you must specify at least one command for the container: exec POD -- COMMAND");
    command.assign(flags.args.begin() + 1, flags.args.end());
  }
  flags.args.resize(std::min(named, flags.args.size()));
  json::value pod = TRY(one_pod(*session, flags.args));
  std::string container = flags.container.empty() ? default_container(pod) : flags.container;
  if (flags.container.empty() && !flags.quiet && get_array(pod, "spec.containers").size() > 1)
    std::fprintf(stderr, "Defaulted container \"%s\" (others: see describe)\n", container.c_str());
  if (flags.tty && !::isatty(STDIN_FILENO)) {
    if (flags.use_stdin) std::fputs("Unable to use a TTY - input is not a terminal or the right kind of file\n", stderr);
    else flags.tty = false;
  }
  Request request{.path = session->path(schema::catalog().of(kPod), session->ns(), get_string(pod, "metadata.name"), attach ? "attach" : "exec")};
  for (const auto& word : command) request.query.emplace_back("command", word);
  request.query.emplace_back("container", container);
  if (flags.use_stdin) request.query.emplace_back("stdin", "true");
  request.query.emplace_back("stdout", "true");
  if (flags.tty) request.query.emplace_back("tty", "true");
  else request.query.emplace_back("stderr", "true");
  auto socket = TRY(session->upgrade(request, kProtocol));
  return talk(*socket, flags);
}

}  // namespace

void add_exec(Commands& commands) {
  for (bool attach : {false, true}) {
    auto flags = std::make_shared<ExecFlags>();
    CLI::App* command = attach ? commands.add("attach", "Join a container's own process") : commands.add("exec", "Run a command in a container");
    command->add_option("args", flags->args, attach ? "POD or KIND/NAME" : "POD or KIND/NAME, -- COMMAND [ARGS...]");
    command->add_option("-c,--container", flags->container, "the container");
    command->add_flag("-i,--stdin", flags->use_stdin, "pass standard input");
    command->add_flag("-t,--tty", flags->tty, "with a terminal");
    command->add_flag("-q,--quiet", flags->quiet, "only what the process prints");
    commands.on(command, [&commands, flags, attach] { return run(commands, *flags, attach); });
  }
}

}  // namespace coracle::ctl
