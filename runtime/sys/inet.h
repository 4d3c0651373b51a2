// SPDX-License-Identifier: Apache-2.0
// IPv4 sockets for datagrams and for connections under way, for those that serve or ask many at once (DNS):
// nonblocking, born close-on-exec. A call that would have to wait says unavailable (EAGAIN): go back to epoll. Source:
// ip(7), udp(7), tcp(7).
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct Endpoint4 {
  uint32_t address = 0;  // in host order
  uint16_t port = 0;
  auto operator<=>(const Endpoint4&) const = default;
};

enum class Transport { udp, tcp };

// Bound; TCP listens. Errors: err() is EADDRINUSE when somebody else has the port.
Result<Fd> listen_on(Transport transport, const Endpoint4& at, int backlog = 64);
// UDP: from a random port, hearing `to` only. TCP: the connection may still be under way; the socket becomes writable.
Result<Fd> connect_to(Transport transport, const Endpoint4& to);
Result<Endpoint4> bound_to(const Fd& socket);

struct Accepted {
  Fd socket;
  Endpoint4 from;
};
Result<Accepted> accept_from(const Fd& listener);

struct Datagram {
  size_t size = 0;  // more than the buffer holds: it was cut
  Endpoint4 from;
};
Result<Datagram> receive_datagram(const Fd& socket, std::span<char> buffer);
Result<void> send_datagram(const Fd& socket, const Endpoint4& to, std::string_view bytes);

// Of a connected socket. 0 bytes received from TCP: the other side has finished.
Result<size_t> receive_some(const Fd& socket, std::span<char> buffer);
Result<size_t> send_some(const Fd& socket, std::string_view bytes);

// A port where a process of this machine waits for anybody: a listening TCP socket, a UDP socket without a peer.
struct Listener {
  Transport transport = Transport::udp;
  Endpoint4 at;  // address 0: every address
  auto operator<=>(const Listener&) const = default;
};
// Those of the calling thread's network namespace, each once. IPv6 sockets that may take IPv4 connections are among them. What is
// beyond 4 MiB of the kernel's list is left out. Blocks for the length of the list. Source: proc_pid_net(5), /proc/net/tcp.
Result<std::vector<Listener>> listeners();
// The same, of one of the kernel's lists: /proc/net/tcp or udp; `v6`: tcp6 or udp6. An incomplete last line is left out.
std::vector<Listener> parse_listeners(std::string_view list, Transport transport, bool v6);

}  // namespace coracle::sys
