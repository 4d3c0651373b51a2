// SPDX-License-Identifier: Apache-2.0
// Stream sockets and waiting: listening, accepting, waiting for readiness, and an eventfd that wakes a waiting thread. All
// sockets are non-blocking and close-on-exec; a caller that waits gives a timeout. Errors: errno's, unless stated. Source:
// tcp(7), epoll(7).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct Endpoint {
  std::string address;  // "127.0.0.1", "::1"
  uint16_t port = 0;
  std::string text() const;  // "127.0.0.1:80", "[::1]:80"
  bool loopback() const;
};

// Listens on a numeric IPv4 or IPv6 address, which the machine may not have yet; port 0 picks a free one. Errors: invalid (not an
// address), conflict (in use), ...
Result<Fd> listen_tcp(const std::string& address, uint16_t port);
// Accepts the next pending connection and sets TCP_NODELAY and keep-alive. Errors: unavailable if none is pending.
Result<Fd> accept_tcp(const Fd& listener);
// Listens on a stream socket at `path`, which its owner alone may use; a socket that is there is replaced. Errors: too_large for
// a long path; errno's.
Result<Fd> listen_local(const std::string& path);
// Accepts the next pending connection. `uid`: of the process that has connected. Errors: as accept_tcp.
Result<Fd> accept_local(const Fd& listener, uid_t& uid);
// Starts a connection to a numeric address. When the socket becomes writable, `connected` returns the outcome. Errors: invalid
// (not an address), or an immediate error of the kernel (no route).
Result<Fd> connect_tcp(const std::string& address, uint16_t port);
// The outcome of a connection attempt. Errors: the kernel's, including err().
Result<void> connected(const Fd& socket);
Endpoint local_endpoint(const Fd& socket);
Endpoint peer_endpoint(const Fd& socket);
// Shuts down both directions, which wakes a thread that waits on the socket; the descriptor stays open.
void shut_down(const Fd& socket);

void shut_down_writing(const Fd& socket);  // the peer reads end of file

// Blocks until bytes arrive on a non-blocking socket or `wake` is readable. 0: end of file, or woken. Errors: the kernel's.
Result<size_t> receive(const Fd& socket, char* to, size_t size, int wake);
// Receive and send what is possible without waiting; nothing if nothing is. 0 received: end of file. Errors: the kernel's.
Result<std::optional<size_t>> receive_now(const Fd& socket, char* to, size_t size);
// The same, but waits on a blocking socket, for as long as its SO_RCVTIMEO says.
Result<std::optional<size_t>> receive_soon(const Fd& socket, char* to, size_t size);
Result<std::optional<size_t>> send_now(const Fd& socket, std::string_view bytes);
// Discards received bytes, at most `bytes_max`, without waiting and without copying them. 0: end of file. Errors: unavailable if
// nothing is there; otherwise the kernel's. Source: tcp(7), MSG_TRUNC.
Result<size_t> discard(const Fd& socket, size_t bytes_max);
// Whether the peer sends nothing more: it has closed or reset the connection, and no input is pending. Does not wait or read.
bool has_left(const Fd& socket);
// Blocks until everything is sent, or `wake` is readable. Errors: the kernel's; cancelled.
Result<void> send_all(const Fd& socket, std::string_view bytes, int wake);

// This machine's unicast addresses without loopback and link-local ones, in the kernel's order.
std::vector<std::string> interface_addresses();

using Timeout = std::optional<std::chrono::milliseconds>;  // nothing: no limit

struct Readiness {
  bool readable = false, writable = false, hung_up = false;
};
// Waits until one of two descriptors is ready; `second` may be -1. Everything false: the timeout has passed.
struct WaitResult {
  Readiness first;
  bool second_readable = false;
  bool second_left = false;  // its peer sends no more, or it was shut down
};
// `second_for`: the events of `second` to wait for: input (which includes end of file), or only the peer's closing.
enum class SecondFor { input, leaving };
WaitResult wait_ready(int first, bool want_read, bool want_write, int second, Timeout timeout,
                      SecondFor second_for = SecondFor::input);

// Waits until the peer of `socket` has closed it or shut down its direction (true), or `second` is readable (false). Does not
// look at pending input.
bool wait_gone(int socket, int second);

class Wakeup {  // Wakes a thread that waits on fd(), from any thread; stays readable until cleared.
 public:
  Wakeup();
  int fd() const { return fd_.get(); }
  void signal() const;
  void clear() const;

 private:
  Fd fd_;
};

class ReadySet {  // Many descriptors, each with a token; an add_once entry reports once until it is re-armed.
 public:
  ReadySet();
  Result<void> add(int fd, uint64_t token);       // reports whenever it is readable
  Result<void> add_once(int fd, uint64_t token);  // reports once
  Result<void> arm_again(int fd, uint64_t token);
  void remove(int fd);
  std::vector<uint64_t> wait(Timeout timeout);  // empty: the timeout has passed

 private:
  Fd fd_;
};

}  // namespace coracle::sys
