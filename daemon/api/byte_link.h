// SPDX-License-Identifier: Apache-2.0
// An upgraded connection as a byte stream in both directions: either plain, or in binary WebSocket messages whose boundaries have
// no meaning (KEP-4006, SPDY in a tunnel). For one reader and several writers.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "daemon/api/connection.h"
#include "daemon/api/websocket.h"

namespace coracle::api {

// How long a peer of an exec or port-forward stream may leave output unread. Source: kubelet's idle time of such streams.
constexpr std::chrono::hours kStreamTimeout{4};

class ByteLink {
 public:
  virtual ~ByteLink() = default;
  // Blocks; returns "" at the end. Errors: unavailable, bad_request, too_large.
  virtual Result<std::string> read() = 0;
  virtual bool write(std::string_view bytes) = 0;  // sends at once; thread-safe. False: the peer is gone
  virtual void end() = 0;                          // closes the sending direction
  virtual const Fd& socket() const = 0;
};

class PlainLink : public ByteLink {
 public:
  explicit PlainLink(Connection& connection) : connection_(connection) { connection.set_write_timeout(kStreamTimeout); }
  Result<std::string> read() override;
  bool write(std::string_view bytes) override { return connection_.write(bytes) && connection_.flush(); }
  void end() override {}
  const Fd& socket() const override { return connection_.socket(); }

 private:
  Connection& connection_;
};

class TunnelLink : public ByteLink {
 public:
  TunnelLink(Connection& connection, WebSocket socket) : connection_(connection), socket_(std::move(socket)) {
    connection.set_write_timeout(kStreamTimeout);
  }
  Result<std::string> read() override;
  bool write(std::string_view bytes) override { return socket_.send(kBinary, bytes); }
  void end() override { socket_.close(); }
  const Fd& socket() const override { return connection_.socket(); }

 private:
  Connection& connection_;
  WebSocket socket_;
};

}  // namespace coracle::api
