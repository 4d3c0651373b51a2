// SPDX-License-Identifier: Apache-2.0
// See stream.h.
#include "runtime/sys/stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

namespace coracle::sys {
namespace {

Result<void> wait_until_ready(const Fd& socket, short events, Deadline deadline) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd wait{.fd = socket.get(), .events = events, .revents = 0};
    int ready = ::poll(&wait, 1, int(std::clamp<long long>(left, 0, 1 << 30)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Error::from_errno("poll");
    if (ready == 0 && left <= 0) return Error(Code::timeout, "no answer");
  }
}

bool is_to_be_tried_again() { return errno == EINTR || errno == EAGAIN; }

}  // namespace

Result<Fd> connect_stream(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(Code::too_large, "the socket's path is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return Error::from_errno("unix socket");
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) return Error::from_errno("connect");
  return socket;
}

Result<void> send_all(const Fd& socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    TRY(wait_until_ready(socket, POLLOUT, deadline));
    ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && !is_to_be_tried_again()) return Error::from_errno("send");
    if (sent > 0) bytes.remove_prefix(size_t(sent));
  }
  return {};
}

Result<std::string> receive(const Fd& socket, size_t max, Deadline deadline) {
  while (true) {
    TRY(wait_until_ready(socket, POLLIN, deadline));
    std::string bytes(max, '\0');
    ssize_t received = ::recv(socket.get(), bytes.data(), max, MSG_DONTWAIT);
    if (received < 0 && !is_to_be_tried_again()) return Error::from_errno("receive");
    if (received < 0) continue;
    bytes.resize(size_t(received));
    return bytes;
  }
}

}  // namespace coracle::sys
