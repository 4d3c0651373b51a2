// SPDX-License-Identifier: Apache-2.0
// See pause_link.h.
#include "runtime/container/pause_link.h"

#include <cstring>

#include "runtime/sys/file.h"

namespace coracle::runtime {
namespace {

Error gone() { return Error(Code::unavailable, "coracle-pause is gone"); }

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Result<PauseLink> PauseLink::connect(const Fd& directory, const std::string& name) {
  PauseLink out;
  out.socket_ = TRY(sys::connect_unix(directory, name));
  sys::PeerCredentials peer = TRY(sys::peer_credentials(out.socket_));
  out.peer_pid_ = peer.pid;
  return out;
}

pause::Request PauseLink::request(pause::Kind kind, const std::string& id) {
  pause::Request out{};
  out.kind = kind;
  out.version = pause::kProtocolVersion;
  std::memcpy(out.id, id.data(), std::min(id.size(), pause::kIdMax - 1));
  return out;
}

Result<Answer> PauseLink::ask(const pause::Request& request, std::span<const int> fds) {
  TRY(sys::send_message(socket_, bytes_of(request), fds).wrap("ask coracle-pause"));
  bool is_there = TRY(sys::wait_readable(socket_, kPauseTimeout));
  if (!is_there) return Error(Code::timeout, "coracle-pause does not answer");
  Answer out;
  sys::Message message = TRY(sys::receive_message(socket_, std::as_writable_bytes(std::span(&out.reply, 1))));
  if (message.size == 0) return gone();
  if (message.size != sizeof out.reply || out.reply.kind != pause::Kind::reply)
    return Error(Code::internal, "coracle-pause answers something else");
  out.fds = std::move(message.fds);
  return out;
}

Result<void> PauseLink::subscribe() {
  pause::Request request = PauseLink::request(pause::Kind::subscribe, "");
  return sys::send_message(socket_, bytes_of(request), {});
}

Result<std::optional<StateMessage>> PauseLink::next(std::optional<std::chrono::milliseconds> timeout) {
  if (timeout) {
    bool is_there = TRY(sys::wait_readable(socket_, timeout));
    if (!is_there) return Error(Code::timeout, "coracle-pause does not tell");
  }
  StateMessage out;
  auto message = sys::receive_message(socket_, std::as_writable_bytes(std::span(&out.state, 1)), true);
  if (!message && message.error().err() == EAGAIN) return std::optional<StateMessage>();
  if (!message) return message.take_error();
  if (message->size == 0) return gone();
  if (message->size != sizeof out.state) return Error(Code::internal, "coracle-pause tells something else");
  out.state.id[pause::kIdMax - 1] = 0;
  if (!message->fds.empty()) out.pidfd = std::move(message->fds[0]);
  return std::optional<StateMessage>(std::move(out));
}

}  // namespace coracle::runtime
