// SPDX-License-Identifier: Apache-2.0
// A scripted server behind the proxy, on a loopback port: it sends exact bytes, for responses that real servers do not send.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <thread>

#include "runtime/sys/socket.h"

namespace coracle::api {

class Peer {  // one connection; reads wait for at most a minute
 public:
  explicit Peer(Fd socket) : socket_(std::move(socket)) {}

  std::string read_until(std::string_view end) {
    while (pending_.find(end) == std::string::npos && fill()) {
    }
    size_t at = pending_.find(end), size = at == std::string::npos ? pending_.size() : at + end.size();
    return take(size);
  }
  std::string read_head() { return head = read_until("\r\n\r\n"); }
  std::string read_exactly(size_t size) {
    while (pending_.size() < size && fill()) {
    }
    return take(std::min(size, pending_.size()));
  }
  std::string read_chunked() {
    std::string body;
    for (;;) {
      size_t size = std::strtoul(read_until("\r\n").c_str(), nullptr, 16);
      body += read_exactly(size);
      read_exactly(2);
      if (size == 0) return body;
    }
  }
  // The data of one read; "" at the end of the stream.
  std::string read_some() {
    if (pending_.empty()) fill();
    return take(pending_.size());
  }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count > 0) bytes.remove_prefix(size_t(count));
      else if (errno != EAGAIN || !sys::wait_ready(socket_.get(), false, true, -1, std::chrono::seconds(60)).first.writable)
        return false;
    }
    return true;
  }
  void close() { socket_.reset(); }
  void reset() {  // closes with RST instead of FIN
    linger hard{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    socket_.reset();
  }

  std::string head;

 private:
  bool fill() {
    char piece[64 << 10];
    if (!sys::wait_ready(socket_.get(), true, false, -1, std::chrono::seconds(60)).first.readable) return false;
    ssize_t count = ::recv(socket_.get(), piece, sizeof piece, 0);
    if (count > 0) pending_.append(piece, size_t(count));
    return count > 0;
  }
  std::string take(size_t size) {
    std::string out = pending_.substr(0, size);
    pending_.erase(0, size);
    return out;
  }

  Fd socket_;
  std::string pending_;
};

class Backend {
 public:
  using Script = std::function<void(Peer&)>;
  // Runs the script for each connection in turn.
  explicit Backend(Script script) : listener_(MUST(sys::listen_tcp("127.0.0.1", 0))), script_(std::move(script)) {
    thread_ = std::jthread([this](std::stop_token stop) {
      std::stop_callback on_stop(stop, [this] { wakeup_.signal(); });
      while (!stop.stop_requested()) {
        (void)sys::wait_ready(listener_.get(), true, false, wakeup_.fd(), std::nullopt);
        auto socket = sys::accept_tcp(listener_);
        if (!socket) continue;
        Peer peer(*std::move(socket));
        script_(peer);
      }
    });
  }
  uint16_t port() const { return sys::local_endpoint(listener_).port; }

 private:
  Fd listener_;
  sys::Wakeup wakeup_;
  Script script_;
  std::jthread thread_;  // last member: it uses the others
};

}  // namespace coracle::api
