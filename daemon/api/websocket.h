// SPDX-License-Identifier: Apache-2.0
// The server side of WebSocket: the opening handshake, frames, and Kubernetes' channel protocols. The frame decoder is pure; only
// the class WebSocket uses the connection.
//   bytes ──FrameDecoder──▶ Frame ──WebSocket::receive (joins fragments, answers pings)──▶ Message
// Source: RFC 6455; apimachinery util/remotecommand (channel protocols, versions 1 to 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/api/http.h"

namespace coracle::api {

constexpr size_t kMessageBytesMax = 4 << 20;  // one message of a client with all its fragments

std::string websocket_accept(std::string_view key);  // the value of Sec-WebSocket-Accept for a Sec-WebSocket-Key
bool asks_for_websocket(const Head& head);

struct Frame {
  bool final = false;
  uint8_t opcode = 0;
  std::string payload;  // unmasked
};
enum Opcode : uint8_t { kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };

class FrameDecoder {  // Decodes the masked frames of clients. Pure.
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next complete frame; nullopt: more bytes are needed. Errors: bad_request (protocol error), too_large.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
};

std::string encode_frame(uint8_t opcode, std::string_view payload);  // a server's frame: final, not masked
std::string close_payload(uint16_t code, std::string_view reason);

struct Message {
  bool text = false;
  std::string payload;
};

class WebSocket {
 public:
  // Answers the handshake with the first of `protocols` that the client offers. Errors: bad_request if there is none, unless the
  // client offers none and `protocols` contains ""; unavailable if the client has disconnected.
  static Result<WebSocket> accept(Exchange& exchange, const std::vector<std::string_view>& protocols);

  const std::string& protocol() const { return protocol_; }
  // Blocks for the next message; nullopt: the client sent a close frame. Errors: unavailable, bad_request, too_large, timeout.
  Result<std::optional<Message>> receive();
  bool send(uint8_t opcode, std::string_view payload);  // thread-safe; false: the client is gone
  bool send_encoded(std::string_view frames);           // the same for any number of frames made by encode_frame
  void close(uint16_t code = 1000, std::string_view reason = {});

 private:
  WebSocket(Connection& connection, std::string protocol) : connection_(&connection), protocol_(std::move(protocol)) {}
  Connection* connection_;
  std::string protocol_;
  FrameDecoder decoder_;
  std::string fragments_;
  std::optional<uint8_t> fragmented_;  // opcode of the message being joined
};

// How messages contain channels: version (1, 4, 5), and whether as base64 text.
struct ChannelProtocol {
  int version = 0;
  bool base64 = false;
};
constexpr uint8_t kCloseChannel = 255;  // in version 5: the payload is the number of the closed channel

std::optional<ChannelProtocol> channel_protocol(std::string_view name);  // "v5.channel.k8s.io", "base64.channel.k8s.io"
std::string encode_channel(const ChannelProtocol& protocol, uint8_t channel, std::string_view bytes);
struct ChannelBytes {
  uint8_t channel = 0;
  std::string bytes;
};
Result<ChannelBytes> decode_channel(const ChannelProtocol& protocol, std::string_view message);  // Errors: bad_request
inline uint8_t opcode_of(const ChannelProtocol& protocol) { return protocol.base64 ? kText : kBinary; }

}  // namespace coracle::api
