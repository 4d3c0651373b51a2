// SPDX-License-Identifier: Apache-2.0
// Stream sockets and waiting: listening, accepting, "is any of these ready?" and a bell that wakes a sleeper. All
// sockets are non-blocking and close-on-exec; whoever wants to wait says for how long. Source: tcp(7), epoll(7).
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

// Listens on a numeric IPv4 or IPv6 address, which may be one that the machine does not have yet; port 0 picks one.
// Errors: invalid (no address), conflict (in use), ...
Result<Fd> listen_tcp(const std::string& address, uint16_t port);
// The next waiting connection, without delay for small writes and with keep-alive probes. Errors: unavailable when none
// waits.
Result<Fd> accept_tcp(const Fd& listener);
// A connection to a numeric address, under way: when it is writable, `connected` tells. Errors: invalid (no address), or at
// once what the kernel says (no route).
Result<Fd> connect_tcp(const std::string& address, uint16_t port);
// How it ended. Errors: what the kernel says, err() included.
Result<void> connected(const Fd& socket);
Endpoint local_endpoint(const Fd& socket);
Endpoint peer_endpoint(const Fd& socket);
// Ends both directions, so that whoever waits on it wakes up; the descriptor stays open.
void shut_down(const Fd& socket);

void shut_down_writing(const Fd& socket);  // the peer reads the end

// Blocks for bytes of a non-blocking socket, until `wake` is readable. 0: the end, or woken. Errors: what the kernel said.
Result<size_t> receive(const Fd& socket, char* to, size_t size, int wake);
// Throws away what has arrived, `bytes_max` at most, without waiting and without looking at it. 0: the peer has ended.
// Errors: unavailable when nothing is there; else what the kernel said. Source: tcp(7), MSG_TRUNC.
Result<size_t> discard(const Fd& socket, size_t bytes_max);
// Blocks until all was taken, or `wake` is readable. Errors: what the kernel said; cancelled.
Result<void> send_all(const Fd& socket, std::string_view bytes, int wake);

// This machine's unicast addresses, loopback and link-local ones left out, in the kernel's order.
std::vector<std::string> interface_addresses();

using Timeout = std::optional<std::chrono::milliseconds>;  // nothing: for ever

struct Readiness {
  bool readable = false, writable = false, hung_up = false;
};
// Waits until one of two descriptors is ready; `second` may be -1. Both false in all: the time is over.
struct Waited {
  Readiness first;
  bool second_readable = false;
  bool second_left = false;  // its other side sends no more, or it was shut down
};
// `second_for`: what counts of the second: its input (its end is input, too), or only that it left.
enum class SecondFor { input, leaving };
Waited wait_ready(int first, bool want_read, bool want_write, int second, Timeout timeout,
                  SecondFor second_for = SecondFor::input);

// Waits until the peer of `socket` has left, or has nothing more to say (true), or `second` is readable (false). Does not look
// at what there is to read.
bool wait_gone(int socket, int second);

class Bell {  // Wakes whoever waits on fd(), from any thread; rings at most once until cleared.
 public:
  Bell();
  int fd() const { return fd_.get(); }
  void ring() const;
  void clear() const;

 private:
  Fd fd_;
};

class ReadySet {  // Many descriptors, each with a number; an entry reports once and is then armed again by its user.
 public:
  ReadySet();
  Result<void> add(int fd, uint64_t token);       // reports each time it is readable
  Result<void> add_once(int fd, uint64_t token);  // reports once
  Result<void> arm_again(int fd, uint64_t token);
  void remove(int fd);
  std::vector<uint64_t> wait(Timeout timeout);  // empty: the time is over

 private:
  Fd fd_;
};

}  // namespace coracle::sys
