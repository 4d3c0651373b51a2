// SPDX-License-Identifier: Apache-2.0
// A queue of WebSocket frames for a server that may not read at the moment. The sender keeps reading while frames wait: if both
// sides only wrote, both would block for ever.
#pragma once

#include <poll.h>

#include <deque>
#include <string>
#include <string_view>

#include "ctl/session.h"
#include "ctl/websocket.h"

namespace coracle::ctl {

class SendBuffer {
 public:
  explicit SendBuffer(Session::Socket& socket) : socket_(socket) {}

  // Sends as much as possible without blocking and queues the rest for flush(). Errors: unavailable.
  Result<void> send(Opcode opcode, std::string_view payload);
  Result<void> flush();
  bool full() const { return bytes_ >= kFull; }  // the caller stops reading input until some frames are sent
  short events() const { return short(POLLIN | (frames_.empty() ? 0 : POLLOUT)); }  // poll(2) events for the socket

 private:
  static constexpr size_t kFull = 64 << 10;
  Session::Socket& socket_;
  std::deque<std::string> frames_;
  size_t sent_ = 0;   // bytes of the first frame that are sent
  size_t bytes_ = 0;  // queued in all frames
};

}  // namespace coracle::ctl
