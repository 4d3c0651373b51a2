// SPDX-License-Identifier: Apache-2.0
// A TCP port of 127.0.0.1 that refuses connections for certain: a socket is bound to it and does not listen, so no other process
// gets it meanwhile.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "runtime/base/fd.h"

namespace coracle {

class ClosedPort {
 public:
  ClosedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    const bool is_bound = ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                          ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0;
    number_ = is_bound ? ntohs(at.sin_port) : 0;
  }
  uint16_t number() const { return number_; }  // 0: none could be had
  std::string text() const { return std::to_string(number_); }

 private:
  Fd socket_;
  uint16_t number_ = 0;
};

}  // namespace coracle
