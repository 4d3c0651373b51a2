// SPDX-License-Identifier: Apache-2.0
// See forward.h. One loop serves both directions; neither blocks the other.
#include "ctl/forward.h"

#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include "ctl/channels.h"
#include "ctl/flag_values.h"
#include "ctl/send_buffer.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

enum PortChannel : uint8_t { kPortData = 0, kPortError = 1 };
constexpr size_t kGreetingBytes = 2;          // a channel's first message is the port
constexpr size_t kLocalBytesMax = 256 << 10;  // limit of data that waits for the local side to read

class Tie {
 public:
  Tie(Session::Socket& socket, Fd local) : socket_(socket), local_(std::move(local)), send_buffer_(socket) {}

  Result<void> run() {
    while (!over()) {
      bool hears = !server_left_ && to_local_.size() < kLocalBytesMax;
      bool takes = local_sends_ && !server_left_ && !send_buffer_.full();
      short server_events = short(server_left_ ? 0 : send_buffer_.events() & (hears ? ~0 : ~POLLIN));
      pollfd waits[] = {
          {server_left_ ? -1 : socket_.fd(), server_events, 0},
          {takes || !to_local_.empty() ? local_.get() : -1, short((takes ? POLLIN : 0) | (to_local_.empty() ? 0 : POLLOUT)), 0}};
      if (::poll(waits, 2, hears && socket_.has_more() ? 0 : -1) < 0 && errno != EINTR) return Error::from_errno("poll");
      if (waits[0].revents & POLLOUT) send_buffer_.flush();
      if (hears && (waits[0].revents & ~POLLOUT || socket_.has_more())) TRY(receive());
      if (takes && !server_left_ && waits[1].revents & ~POLLOUT) read_local();
      if (send_buffer_.fault() && !server_left_) TRY(receive_the_rest());
      write_local();
    }
    if (!failure_.empty()) return Error(Code::internal, failure_);
    if (broken_) return *broken_;
    return {};
  }

 private:
  bool over() const { return local_gone_ || (server_left_ && to_local_.empty()); }

  // False: there is nothing at the moment.
  Result<bool> receive() {
    auto bytes = socket_.read();
    if (!bytes) return leave(bytes.error()), false;
    if (bytes->empty()) return false;
    reader_.feed(*bytes);
    for (;;) {
      std::optional<Message> message = TRY(reader_.next());
      if (!message) return true;
      handle(*message);
    }
  }

  // The server takes nothing more. What it sent before it left has arrived.
  Result<void> receive_the_rest() {
    while (!server_left_) {
      bool more = TRY(receive());
      if (!more) leave(*send_buffer_.fault());
    }
    return {};
  }

  void leave(const Error& why) {
    if (!server_left_ && !server_ended_) broken_ = why;
    server_left_ = true;
  }

  void handle(const Message& message) {
    if (message.opcode == Opcode::ping) send_buffer_.send(Opcode::pong, message.payload);
    if (message.opcode == Opcode::close) {
      server_left_ = true;
      send_buffer_.send(Opcode::close, std::string_view(message.payload).substr(0, 2));
    }
    if (!is_data(message.opcode) || message.payload.empty()) return;
    uint8_t channel = uint8_t(message.payload[0]);
    std::string_view bytes = std::string_view(message.payload).substr(1);
    if (channel == kCloseChannel) return void(server_ended_ = true);
    if (channel != kPortData && channel != kPortError) return;
    size_t greeting = std::min(bytes.size(), kGreetingBytes - greeted_[channel]);
    greeted_[channel] += greeting;
    bytes.remove_prefix(greeting);
    (channel == kPortData ? to_local_ : failure_).append(bytes);
  }

  void read_local() {
    char buffer[16384];
    ssize_t got = ::recv(local_.get(), buffer + 1, sizeof buffer - 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got < 0) return void(local_gone_ = true);
    if (got > 0) return buffer[0] = char(kPortData), send_buffer_.send(Opcode::binary, {buffer, size_t(got) + 1});
    local_sends_ = false;
    send_buffer_.send(Opcode::binary, std::string{char(kCloseChannel), char(kPortData)});
  }

  void write_local() {
    while (!to_local_.empty()) {
      ssize_t sent = ::send(local_.get(), to_local_.data(), to_local_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return void(local_gone_ = errno != EAGAIN);
      to_local_.erase(0, size_t(sent));
    }
    if (server_ended_ && !std::exchange(told_local_, true)) (void)::shutdown(local_.get(), SHUT_WR);  // may be closed already
  }

  Session::Socket& socket_;
  Fd local_;
  SendBuffer send_buffer_;
  MessageReader reader_;
  std::string to_local_;
  std::string failure_;          // what the server says of the pod's side
  std::optional<Error> broken_;  // the server left before the pod's side had ended
  size_t greeted_[2] = {0, 0};
  bool local_sends_ = true, local_gone_ = false;                          // state of the local side
  bool server_ended_ = false, server_left_ = false, told_local_ = false;  // state of the pod's side
};

Result<uint16_t> named_port(const json::value& pod, const std::string& name) {
  for (view::Container container : view::Pod(pod).spec().containers())
    for (view::ContainerPort port : container.ports())
      if (port.name() == name) return uint16_t(port.container_port());
  return Error(Code::bad_request, "Pod '" + std::string(metadata_of(pod).name()) + "' does not have a named port '" + name + "'");
}

// The protocols that the ports of one number are there for.
class Protocols {
 public:
  static Protocols of(view::PodSpec pod, uint16_t number) {
    Protocols found;
    for (view::Container container : pod.containers())
      for (view::ContainerPort port : container.ports())
        if (port.container_port() == number) found.note(port.protocol());
    return found;
  }
  static Protocols of(view::ServiceSpec service, uint16_t number) {
    Protocols found;
    for (view::ServicePort port : service.ports())
      if (port.port() == number) found.note(port.protocol());
    return found;
  }
  bool are_udp_alone() const { return udp_ && !tcp_; }

 private:
  void note(std::string_view protocol) {
    udp_ |= protocol == "UDP";
    tcp_ |= protocol == "TCP";
  }
  bool udp_ = false, tcp_ = false;
};

Error no_udp(const std::string& remote) { return Error(Code::bad_request, "UDP protocol is not supported for " + remote); }

}  // namespace

Result<void> tie(Session::Socket& socket, Fd local) { return Tie(socket, std::move(local)).run(); }

Result<PortMapping> parse_mapping(std::string_view text) {
  std::string whole(text);
  auto parts = split(text, ':');
  if (parts.size() > 2 || text.empty() || parts.back().empty())
    return Error(Code::bad_request, "invalid port format '" + whole + "': LOCAL:REMOTE, :REMOTE or PORT");
  PortMapping mapping{0, parts.size() == 1, std::string(parts.back())};
  auto fault = [](const std::string& which, std::string_view port) {
    return Error(Code::bad_request, "error parsing " + which + " port '" + std::string(port) + "': " + fault_of_port(port));
  };
  if (parts.size() == 2 && !parts[0].empty()) {
    auto local = parse_number<uint16_t>(parts[0]);
    if (!local) return fault("local", parts[0]);
    mapping.local = *local;
  }
  auto remote = parse_number<int64_t>(mapping.remote);
  if (remote && *remote == 0) return Error(Code::bad_request, "remote port must be > 0");
  if (remote && (*remote < 0 || *remote > 65535)) return fault(mapping.same_local ? "local" : "remote", mapping.remote);
  if (mapping.same_local && remote) mapping.local = uint16_t(*remote);
  return mapping;
}

Result<uint16_t> pod_port(const json::value& pod, const json::value* service, const std::string& remote) {
  auto number = parse_number<uint16_t>(remote);
  if (!service) {
    uint16_t port = TRY(number ? Result<uint16_t>(*number) : named_port(pod, remote));
    if (Protocols::of(view::Pod(pod).spec(), port).are_udp_alone()) return no_udp(remote);
    return port;
  }
  std::string name(metadata_of(*service).name());
  view::ServiceSpec spec = view::Service(*service).spec();
  for (view::ServicePort port : spec.ports()) {
    bool meant = number ? port.port() == *number : port.name() == remote;
    if (!meant) continue;
    uint16_t own = uint16_t(port.port());
    if (Protocols::of(spec, own).are_udp_alone()) return no_udp(remote);
    const json::value* target = port.target_port();
    if (spec.cluster_ip() == "None" || !target) return own;
    if (target->is_string()) return named_port(pod, std::string(target->get_string()));
    const int64_t* at = target->if_int64();
    return at && *at ? uint16_t(*at) : own;
  }
  if (number) return Error(Code::bad_request, "Service " + name + " does not have a service port " + remote);
  return Error(Code::bad_request, "Service '" + name + "' does not have a named port '" + remote + "'");
}

}  // namespace coracle::ctl
