// SPDX-License-Identifier: Apache-2.0
// Bytes for a server that may not read at the moment. The sender keeps reading while they wait: if both sides only wrote, both
// would block for ever.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "ctl/session.h"
#include "ctl/websocket.h"

namespace coracle::ctl {

// After a fault, whatever is appended is dropped. What the server said before it left, such as why it did, can still be read.
class SendBuffer {
 public:
  explicit SendBuffer(Session::Socket& socket) : socket_(socket) {}

  void append(std::string_view bytes);                 // for flush()
  void flush();                                        // sends as much as possible without blocking
  void send(Opcode opcode, std::string_view payload);  // appends a WebSocket frame and flushes
  bool empty() const { return pieces_.empty(); }
  bool full() const { return bytes_ >= kFull; }  // the caller stops reading input until some bytes are sent
  short events() const { return short(POLLIN | (empty() ? 0 : POLLOUT)); }  // poll(2) events for the socket
  const std::optional<Error>& fault() const { return fault_; }              // why the server takes nothing more: unavailable

 private:
  static constexpr size_t kFull = 64 << 10;
  Session::Socket& socket_;
  std::deque<std::string> pieces_;  // TLS takes what is left of a piece from the same memory only
  size_t sent_ = 0;                 // bytes of the first piece that are sent
  size_t bytes_ = 0;                // in all pieces, not sent
  std::optional<Error> fault_;
};

}  // namespace coracle::ctl
