// SPDX-License-Identifier: Apache-2.0
// See inet.h.
#include "runtime/sys/inet.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace coracle::sys {
namespace {

sockaddr_in to_kernel(const Endpoint4& endpoint) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(endpoint.address);
  out.sin_port = htons(endpoint.port);
  return out;
}

Endpoint4 from_kernel(const sockaddr_in& address) { return {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)}; }

Result<Fd> make_socket(Transport transport) {
  int type = transport == Transport::udp ? SOCK_DGRAM : SOCK_STREAM;
  Fd socket(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("socket");
  return socket;
}

}  // namespace

Result<Fd> listen_on(Transport transport, const Endpoint4& at, int backlog) {
  Fd socket = TRY(make_socket(transport));
  if (transport == Transport::tcp) {  // connections of our predecessor may still be closing
    int yes = 1;
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0) return Error::from_errno("setsockopt");
  }
  sockaddr_in address = to_kernel(at);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) return Error::from_errno("bind");
  if (transport == Transport::tcp && ::listen(socket.get(), backlog) < 0) return Error::from_errno("listen");
  return socket;
}

Result<Fd> connect_to(Transport transport, const Endpoint4& to) {
  Fd socket = TRY(make_socket(transport));
  sockaddr_in address = to_kernel(to);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 && errno != EINPROGRESS)
    return Error::from_errno("connect");
  return socket;
}

Result<Endpoint4> bound_to(const Fd& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) < 0) return Error::from_errno("getsockname");
  return from_kernel(address);
}

Result<Accepted> accept_from(const Fd& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  Fd socket(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return Error::from_errno("accept");
  return Accepted{std::move(socket), from_kernel(address)};
}

Result<Datagram> receive_datagram(const Fd& socket, std::span<char> buffer) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ssize_t got = ::recvfrom(socket.get(), buffer.data(), buffer.size(), MSG_TRUNC, reinterpret_cast<sockaddr*>(&address), &size);
  if (got < 0) return Error::from_errno("receive");
  return Datagram{size_t(got), from_kernel(address)};
}

Result<void> send_datagram(const Fd& socket, const Endpoint4& to, std::string_view bytes) {
  sockaddr_in address = to_kernel(to);
  if (::sendto(socket.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return Error::from_errno("send");
  return {};
}

Result<size_t> receive_some(const Fd& socket, std::span<char> buffer) {
  ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return Error::from_errno("receive");
  return size_t(got);
}

Result<size_t> send_some(const Fd& socket, std::string_view bytes) {
  ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0) return Error::from_errno("send");
  return size_t(sent);
}

}  // namespace coracle::sys
