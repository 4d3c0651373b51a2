// SPDX-License-Identifier: Apache-2.0
// IPv4 sockets for datagrams and connections, for servers and clients that handle many at once (DNS). Nonblocking and
// close-on-exec. A call that would block returns unavailable (EAGAIN): wait with epoll. Other errors: errno's.
// Source: ip(7), udp(7), tcp(7).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
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

// Binds a socket; a TCP socket listens. Errors: err() is EADDRINUSE if the port is in use.
Result<Fd> listen_on(Transport transport, const Endpoint4& at, int backlog = 64);
// UDP: a random local port that receives only from `to`. TCP: the connection may still be in progress; then the socket becomes
// writable when it is established.
Result<Fd> connect_to(Transport transport, const Endpoint4& to);
Result<Endpoint4> bound_to(const Fd& socket);

struct Accepted {
  Fd socket;
  Endpoint4 from;
};
Result<Accepted> accept_from(const Fd& listener);

struct Datagram {
  size_t size = 0;  // larger than the buffer: the datagram was truncated
  Endpoint4 from;
};
Result<Datagram> receive_datagram(const Fd& socket, std::span<char> buffer);
Result<void> send_datagram(const Fd& socket, const Endpoint4& to, std::string_view bytes);

// Of a connected socket. 0 bytes received from TCP: the peer has closed its direction.
Result<size_t> receive_some(const Fd& socket, std::span<char> buffer);
Result<size_t> send_some(const Fd& socket, std::string_view bytes);

// A port on which a process accepts traffic from anybody: a listening TCP socket, or a UDP socket without a peer.
struct Listener {
  Transport transport = Transport::udp;
  Endpoint4 at;      // address 0: every address
  uint32_t uid = 0;  // of the user who made the socket
  uint64_t inode = 0;
  auto operator<=>(const Listener&) const = default;
};
// The listeners in the calling thread's network namespace, sorted. Includes IPv6 sockets that may accept IPv4 connections.
// Entries beyond the first 4 MiB of the kernel's list are ignored. The run time grows with the list. Source: proc_pid_net(5),
// /proc/net/tcp.
Result<std::vector<Listener>> listeners();
// Parses one of the kernel's lists: /proc/net/tcp or udp; with `v6` tcp6 or udp6. An incomplete last line is ignored.
std::vector<Listener> parse_listeners(std::string_view list, Transport transport, bool v6);
// The cgroups (their ids in cgroup v2) in which the listeners of that namespace were made, by the inode numbers of the sockets.
// Empty if the kernel does not say: before Linux 5.8, or without its socket diagnosis. Source: sock_diag(7),
// INET_DIAG_CGROUP_ID.
Result<std::map<uint64_t, uint64_t>> cgroups_of_listeners();

}  // namespace coracle::sys
