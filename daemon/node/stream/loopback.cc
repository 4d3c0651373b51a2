// SPDX-License-Identifier: Apache-2.0
// See loopback.h.
#include "daemon/node/stream/loopback.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "runtime/base/text.h"
#include "runtime/sys/netns.h"
#include "runtime/sys/socket.h"

namespace coracle::node {
namespace {

struct Loopback {
  sockaddr_storage address{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Loopback loopback(int family, uint16_t port) {
  Loopback at;
  if (family == AF_INET) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(at.address);
    v4.sin_family = AF_INET, v4.sin_port = htons(port), v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.size = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(at.address);
    v6.sin6_family = AF_INET6, v6.sin6_port = htons(port), v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
    at.size = sizeof v6;
  }
  return at;
}

Error refused(int err) {  // "connection refused", the text that Kubernetes' clients expect
  return Error::from_errno(err, "connect").as(err == ETIMEDOUT ? Code::timeout : Code::unavailable);
}

// Waits until the socket has connected or failed.
Result<void> finish_connect(const Fd& socket, const CallContext& context) {
  sys::Wakeup wakeup;
  std::stop_callback on_stop(context.stop, [&] { wakeup.signal(); });
  auto left = std::chrono::ceil<std::chrono::milliseconds>(context.deadline - std::chrono::steady_clock::now());
  sys::WaitResult woken = sys::wait_ready(socket.get(), false, true, wakeup.fd(), std::max(left, std::chrono::milliseconds(0)));
  if (context.stop.stop_requested()) return Error(Code::cancelled, "connect: cancelled");
  if (!woken.first.writable) return Error(Code::timeout, "connect: nobody answers");
  auto done = sys::connected(socket);
  if (!done) return refused(done.error().err());
  return {};
}

Result<Fd> connect_to(int family, const Fd& network_namespace, uint16_t port, const CallContext& context) {
  Fd socket = TRY(sys::socket_in_netns(network_namespace, family, SOCK_STREAM | SOCK_NONBLOCK, 0));
  int on = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // for latency only
  Loopback at = loopback(family, port);
  if (::connect(socket.get(), at.get(), at.size) == 0) return socket;
  if (errno != EINPROGRESS) return refused(errno);
  TRY(finish_connect(socket, context));
  return socket;
}

}  // namespace

Result<Fd> connect_loopback(const Fd& network_namespace, uint16_t port, const CallContext& context) {
  auto first = connect_to(AF_INET, network_namespace, port, context);
  if (first || first.error().code() == Code::cancelled) return first;
  auto second = connect_to(AF_INET6, network_namespace, port, context);
  if (second || second.error().code() == Code::cancelled) return second;
  std::string why = "failed to connect to localhost:" + std::to_string(port) + ": IPv4: " + to_lower(first.error().text());
  return Error(first.error().code(), why + "; IPv6: " + to_lower(second.error().text()));
}

}  // namespace coracle::node
