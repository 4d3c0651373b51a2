// SPDX-License-Identifier: Apache-2.0
// See socket.h. The only file of the API server with system calls on sockets.
#include "runtime/sys/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace coracle::sys {
namespace {

constexpr int kBacklog = 128;
constexpr size_t kCopied = 16 << 10;
constexpr size_t kReadyMax = 64;  // reported by one wait
constexpr int kKeepAliveIdleSeconds = 60, kKeepAliveIntervalSeconds = 15, kKeepAliveProbes = 4;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<SocketAddress> to_address(const std::string& address, uint16_t port) {
  SocketAddress out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET, v4->sin_port = htons(port), out.size = sizeof *v4;
    return out;
  }
  if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6, v6->sin6_port = htons(port), out.size = sizeof *v6;
    return out;
  }
  return Error(Code::invalid, "not an IP address: " + address);
}

Endpoint to_endpoint(const SocketAddress& from) {
  char text[INET6_ADDRSTRLEN] = "";
  if (from.storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from.storage);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, ntohs(v4.sin_port)};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from.storage);
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return {text, ntohs(v6.sin6_port)};
}

void set_option(const Fd& socket, int level, int name, int value) {
  (void)::setsockopt(socket.get(), level, name, &value, sizeof value);  // only for performance
}

// Sends small writes at once, and detects a peer that has disappeared.
void tune(const Fd& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

Result<Fd> accept_next(const Fd& listener) {
  Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) return socket;
  if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return Error(Code::unavailable, "nobody waits");
  return Error::from_errno("accept a connection");
}

int to_milliseconds(Timeout timeout) {
  if (!timeout) return -1;
  return int(std::clamp<int64_t>(timeout->count(), 0, 1 << 30));
}

}  // namespace

std::string Endpoint::text() const {
  bool v6 = address.find(':') != std::string::npos;
  return (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

bool Endpoint::loopback() const { return address.starts_with("127.") || address == "::1"; }

Result<Fd> listen_tcp(const std::string& address, uint16_t port) {
  SocketAddress at = TRY(to_address(address, port));
  Fd socket(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("make a socket");
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (at.storage.ss_family == AF_INET6) {
    set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set_option(socket, IPPROTO_IPV6, IPV6_FREEBIND, 1);
  } else {
    set_option(socket, IPPROTO_IP, IP_FREEBIND, 1);
  }
  if (::bind(socket.get(), at.get(), at.size) < 0 || ::listen(socket.get(), kBacklog) < 0)
    return Error::from_errno("listen on " + Endpoint{address, port}.text());
  return socket;
}

Result<Fd> accept_tcp(const Fd& listener) {
  Fd socket = TRY(accept_next(listener));
  tune(socket);
  return socket;
}

Result<Fd> listen_local(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(Code::too_large, "the socket's path is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("make a socket");
  // bind(2) takes the mode from the socket's inode: there is no moment with a wider mode.
  if (::fchmod(socket.get(), 0600) < 0) return Error::from_errno("set the mode of a socket");
  if (::unlink(path.c_str()) < 0 && errno != ENOENT) return Error::from_errno("remove " + path);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 || ::listen(socket.get(), kBacklog) < 0)
    return Error::from_errno("listen on " + path);
  return socket;
}

Result<Fd> accept_local(const Fd& listener, uid_t& uid) {
  Fd socket = TRY(accept_next(listener));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return Error::from_errno("identify a peer");
  uid = peer.uid;
  return socket;
}

Result<Fd> connect_tcp(const std::string& address, uint16_t port) {
  SocketAddress to = TRY(to_address(address, port));
  Fd socket(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("make a socket");
  tune(socket);
  if (::connect(socket.get(), to.get(), to.size) < 0 && errno != EINPROGRESS) return Error::from_errno("connect");
  return socket;
}

Result<void> connected(const Fd& socket) {
  int why = 0;
  socklen_t size = sizeof why;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &why, &size) < 0) return Error::from_errno("connect");
  if (why) return Error::from_errno(why, "connect");
  return {};
}

Endpoint local_endpoint(const Fd& socket) {
  SocketAddress at;
  if (::getsockname(socket.get(), at.get(), &at.size) < 0) return {};
  return to_endpoint(at);
}

Endpoint peer_endpoint(const Fd& socket) {
  SocketAddress at;
  if (::getpeername(socket.get(), at.get(), &at.size) < 0) return {};
  return to_endpoint(at);
}

void shut_down(const Fd& socket) {
  (void)::shutdown(socket.get(), SHUT_RDWR);  // no error if it is closed already
}

void shut_down_writing(const Fd& socket) {
  (void)::shutdown(socket.get(), SHUT_WR);  // as above
}

namespace {

Result<std::optional<size_t>> receive_with(const Fd& socket, char* to, size_t size, int flags) {
  ssize_t count;
  do count = ::recv(socket.get(), to, size, flags);
  while (count < 0 && errno == EINTR);
  if (count >= 0) return std::optional(size_t(count));
  if (errno == EAGAIN) return std::optional<size_t>();
  return Error::from_errno("receive");
}

}  // namespace

Result<std::optional<size_t>> receive_now(const Fd& socket, char* to, size_t size) {
  return receive_with(socket, to, size, MSG_DONTWAIT);
}
Result<std::optional<size_t>> receive_soon(const Fd& socket, char* to, size_t size) { return receive_with(socket, to, size, 0); }

Result<std::optional<size_t>> send_now(const Fd& socket, std::string_view bytes) {
  ssize_t count;
  do count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  while (count < 0 && errno == EINTR);
  if (count >= 0) return std::optional(size_t(count));
  if (errno == EAGAIN) return std::optional<size_t>();
  return Error::from_errno("send");
}

Result<size_t> receive(const Fd& socket, char* to, size_t size, int wake) {
  for (;;) {
    if (auto got = TRY(receive_now(socket, to, size))) return *got;
    if (wait_ready(socket.get(), true, false, wake, std::nullopt).second_readable) return size_t(0);
  }
}

Result<size_t> discard(const Fd& socket, size_t bytes_max) {
  ssize_t count;
  do count = ::recv(socket.get(), nullptr, bytes_max, MSG_DONTWAIT | MSG_TRUNC);
  while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EFAULT) {  // a Unix socket copies
    std::array<char, kCopied> copied;
    auto got = TRY(receive_now(socket, copied.data(), std::min(bytes_max, copied.size())));
    return got ? Result<size_t>(*got) : Error(Code::unavailable, "nothing has arrived");
  }
  if (count >= 0) return size_t(count);
  if (errno == EAGAIN) return Error(Code::unavailable, "nothing has arrived");
  return Error::from_errno("receive");
}

bool has_left(const Fd& socket) {
  char next;
  ssize_t count;
  do count = ::recv(socket.get(), &next, 1, MSG_DONTWAIT | MSG_PEEK);
  while (count < 0 && errno == EINTR);
  return count == 0 || (count < 0 && errno != EAGAIN);
}

Result<void> send_all(const Fd& socket, std::string_view bytes, int wake) {
  while (!bytes.empty()) {
    if (auto sent = TRY(send_now(socket, bytes))) bytes.remove_prefix(*sent);
    else if (wait_ready(socket.get(), false, true, wake, std::nullopt).second_readable)
      return Error(Code::cancelled, "send: cancelled");
  }
  return {};
}

std::vector<std::string> interface_addresses() {
  std::vector<std::string> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) < 0) return found;
  for (ifaddrs* at = all; at; at = at->ifa_next) {
    if (!at->ifa_addr || (at->ifa_flags & IFF_LOOPBACK)) continue;
    SocketAddress address;
    if (at->ifa_addr->sa_family == AF_INET) {
      std::memcpy(&address.storage, at->ifa_addr, sizeof(sockaddr_in));
    } else if (at->ifa_addr->sa_family == AF_INET6) {
      std::memcpy(&address.storage, at->ifa_addr, sizeof(sockaddr_in6));
      if (IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_addr)) continue;
    } else {
      continue;
    }
    found.push_back(to_endpoint(address).address);
  }
  ::freeifaddrs(all);
  return found;
}

WaitResult wait_ready(int first, bool want_read, bool want_write, int second, Timeout timeout, SecondFor second_for) {
  std::array<pollfd, 2> fds{};
  fds[0] = {first, short((want_read ? POLLIN | POLLRDHUP : 0) | (want_write ? POLLOUT : 0)), 0};
  fds[1] = {second, short(second_for == SecondFor::input ? POLLIN : POLLRDHUP), 0};
  if (::poll(fds.data(), second < 0 ? 1 : 2, to_milliseconds(timeout)) <= 0) return {};
  WaitResult out;
  out.first.readable = fds[0].revents & (POLLIN | POLLRDHUP | POLLHUP | POLLERR);
  out.first.writable = fds[0].revents & (POLLOUT | POLLHUP | POLLERR);
  out.first.hung_up = fds[0].revents & (POLLHUP | POLLERR | POLLNVAL);
  out.second_readable = fds[1].revents & POLLIN;
  out.second_left = fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL);
  return out;
}

bool wait_gone(int socket, int second) {
  std::array<pollfd, 2> fds{{{socket, POLLRDHUP, 0}, {second, POLLIN, 0}}};
  while (::poll(fds.data(), 2, -1) < 0 && errno == EINTR) {
  }
  return fds[0].revents != 0;
}

Wakeup::Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Wakeup::signal() const {
  uint64_t one = 1;
  (void)!::write(fd_.get(), &one, sizeof one);  // a full counter is readable too
}

void Wakeup::clear() const {
  uint64_t count;
  (void)!::read(fd_.get(), &count, sizeof count);  // nothing to read if it was not signalled
}

ReadySet::ReadySet() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {}

namespace {
Result<void> control(const Fd& set, int operation, int fd, uint32_t events, uint64_t token) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (::epoll_ctl(set.get(), operation, fd, &event) < 0) return Error::from_errno("watch a descriptor");
  return {};
}
}  // namespace

Result<void> ReadySet::add(int fd, uint64_t token) { return control(fd_, EPOLL_CTL_ADD, fd, EPOLLIN, token); }
Result<void> ReadySet::add_once(int fd, uint64_t token) {
  return control(fd_, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, token);
}
Result<void> ReadySet::arm_again(int fd, uint64_t token) {
  return control(fd_, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, token);
}
void ReadySet::remove(int fd) { (void)control(fd_, EPOLL_CTL_DEL, fd, 0, 0); }  // closing it removes it too

std::vector<uint64_t> ReadySet::wait(Timeout timeout) {
  std::array<epoll_event, kReadyMax> events;
  int count = ::epoll_wait(fd_.get(), events.data(), int(events.size()), to_milliseconds(timeout));
  std::vector<uint64_t> tokens;
  for (int i = 0; i < count; i++) tokens.push_back(events[i].data.u64);
  return tokens;
}

}  // namespace coracle::sys
