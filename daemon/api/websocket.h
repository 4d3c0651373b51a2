// SPDX-License-Identifier: Apache-2.0
// WebSocket, the server's side: the opening handshake, frames in and out, and the channel protocols that Kubernetes speaks
// over it. Frames are parsed by a pure decoder; the socket is met in WebSocket alone.
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

constexpr size_t kMessageBytesMax = 4 << 20;  // one message of a client, all its fragments

std::string websocket_accept(std::string_view key);  // the answer to Sec-WebSocket-Key
bool asks_for_websocket(const Head& head);

struct Frame {
  bool final = false;
  uint8_t opcode = 0;
  std::string payload;  // unmasked
};
enum Opcode : uint8_t { kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };

class FrameDecoder {  // Clients' frames: masked. Pure.
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame; nothing: more bytes are needed. Errors: bad_request (the protocol was broken), too_large.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
};

std::string encode_frame(uint8_t opcode, std::string_view payload);  // a server's: final, not masked
std::string close_payload(uint16_t code, std::string_view reason);

struct Message {
  bool text = false;
  std::string payload;
};

class WebSocket {
 public:
  // Answers the handshake, choosing the first of `protocols` that the client offers. Nothing in common: bad_request,
  // unless the client offers none and "" is among them.
  static Result<WebSocket> accept(Exchange& exchange, const std::vector<std::string_view>& protocols);

  const std::string& protocol() const { return protocol_; }
  // Blocks for the next message; nothing: the client said goodbye. Errors: unavailable, bad_request, too_large, timeout.
  Result<std::optional<Message>> receive();
  bool send(uint8_t opcode, std::string_view payload);  // thread-safe; false: the client is gone
  bool send_encoded(std::string_view frames);           // the same, of any number that encode_frame has made
  void close(uint16_t code = 1000, std::string_view reason = {});

 private:
  WebSocket(TlsConnection& connection, std::string protocol) : connection_(&connection), protocol_(std::move(protocol)) {}
  TlsConnection* connection_;
  std::string protocol_;
  FrameDecoder decoder_;
  std::string fragments_;
  std::optional<uint8_t> fragmented_;  // opcode of the message that is being joined
};

// How messages carry channels: version (1, 4, 5) and whether as base64 text.
struct ChannelProtocol {
  int version = 0;
  bool base64 = false;
};
constexpr uint8_t kCloseChannel = 255;  // of version 5: names the channel that has ended

std::optional<ChannelProtocol> channel_protocol(std::string_view name);  // "v5.channel.k8s.io", "base64.channel.k8s.io"
std::string encode_channel(const ChannelProtocol& protocol, uint8_t channel, std::string_view bytes);
struct ChannelBytes {
  uint8_t channel = 0;
  std::string bytes;
};
Result<ChannelBytes> decode_channel(const ChannelProtocol& protocol, std::string_view message);  // Errors: bad_request
inline uint8_t opcode_of(const ChannelProtocol& protocol) { return protocol.base64 ? kText : kBinary; }

}  // namespace coracle::api
