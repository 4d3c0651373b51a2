// SPDX-License-Identifier: Apache-2.0
// Frames on their way to a server that may not read just now. Who sends goes on reading meanwhile: two who only write wait for
// each other for ever.
#pragma once

#include <poll.h>

#include <deque>
#include <string>
#include <string_view>

#include "ctl/session.h"
#include "ctl/websocket.h"

namespace coracle::ctl {

class Outbox {
 public:
  explicit Outbox(Session::Socket& socket) : socket_(socket) {}

  // Sends what goes without blocking; flush() the rest. Errors: unavailable.
  Result<void> send(Opcode opcode, std::string_view payload);
  Result<void> flush();
  bool full() const { return bytes_ >= kFull; }  // read no more to send before some of it has left
  short events() const { return short(POLLIN | (frames_.empty() ? 0 : POLLOUT)); }  // what to wait for on the socket

 private:
  static constexpr size_t kFull = 64 << 10;
  Session::Socket& socket_;
  std::deque<std::string> frames_;
  size_t sent_ = 0;   // of the first
  size_t bytes_ = 0;  // of all
};

}  // namespace coracle::ctl
