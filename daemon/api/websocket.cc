// SPDX-License-Identifier: Apache-2.0
// See websocket.h.
#include "daemon/api/websocket.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "runtime/base/text.h"

namespace coracle::api {
namespace {

constexpr size_t kControlBytesMax = 125;

Error websocket_protocol_error(std::string_view how) {
  return Error(Code::bad_request, "WebSocket protocol: " + std::string(how));
}

uint64_t big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (unsigned char byte : bytes) value = value << 8 | byte;
  return value;
}

bool is_control_opcode(uint8_t opcode) { return opcode >= 8; }
bool is_known_opcode(uint8_t opcode) { return opcode <= kBinary || (opcode >= kClose && opcode <= kPong); }

std::string choose(const Headers& headers, const std::vector<std::string_view>& ours) {
  for (std::string_view mine : ours)
    for (std::string_view field : headers.all("Sec-WebSocket-Protocol"))
      for (std::string_view offered : split(field, ','))
        if (trim(offered) == mine) return std::string(mine);
  return {};
}

}  // namespace

std::string websocket_accept(std::string_view key) {
  std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return base64_encode({reinterpret_cast<char*>(digest), sizeof digest});
}

bool asks_for_websocket(const Head& head) {
  return head.method == "GET" && header_has_token(head.headers.get("Connection"), "upgrade") &&
         header_has_token(head.headers.get("Upgrade"), "websocket");
}

Result<std::optional<Frame>> FrameDecoder::next() {
  std::string_view have = buffer_;
  if (have.size() < 2) return std::nullopt;
  uint8_t first = uint8_t(have[0]), second = uint8_t(have[1]);
  Frame frame{bool(first & 0x80), uint8_t(first & 0x0f), {}};
  if (first & 0x70) return websocket_protocol_error("reserved bits are set");
  if (!is_known_opcode(frame.opcode)) return websocket_protocol_error("unknown opcode");
  if (!(second & 0x80)) return websocket_protocol_error("a client's frame must be masked");
  uint64_t size = second & 0x7f;
  if (is_control_opcode(frame.opcode) && (size > kControlBytesMax || !frame.final))
    return websocket_protocol_error("oversized or fragmented control frame");
  size_t extended = size == 126 ? 2 : size == 127 ? 8 : 0;
  if (have.size() < 2 + extended + 4) return std::nullopt;
  if (extended) size = big_endian(have.substr(2, extended));
  if (size > kMessageBytesMax) return Error(Code::too_large, "WebSocket message");
  size_t head = 2 + extended + 4;
  if (have.size() < head + size) return std::nullopt;
  std::string_view mask = have.substr(head - 4, 4);
  frame.payload.assign(have.substr(head, size));
  for (size_t i = 0; i < frame.payload.size(); i++) frame.payload[i] = char(frame.payload[i] ^ mask[i % 4]);
  buffer_.erase(0, head + size);
  return frame;
}

std::string encode_frame(uint8_t opcode, std::string_view payload) {
  std::string frame(1, char(0x80 | opcode));
  if (payload.size() <= kControlBytesMax) {
    frame += char(payload.size());
  } else {
    int bytes = payload.size() <= 0xffff ? 2 : 8;
    frame += char(bytes == 2 ? 126 : 127);
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) frame += char(payload.size() >> shift & 0xff);
  }
  return frame.append(payload);
}

std::string close_payload(uint16_t code, std::string_view reason) {
  std::string payload{char(code >> 8), char(code & 0xff)};
  return payload.append(reason.substr(0, kControlBytesMax - 2));
}

Result<WebSocket> WebSocket::accept(Exchange& exchange, const std::vector<std::string_view>& protocols) {
  const Headers& headers = exchange.head.headers;
  std::string_view key = headers.get("Sec-WebSocket-Key");
  if (headers.get("Sec-WebSocket-Version") != "13" || key.empty())
    return websocket_protocol_error("version 13 and a key are required");
  std::string chosen = choose(headers, protocols);
  bool may_be_none = std::find(protocols.begin(), protocols.end(), "") != protocols.end();
  bool offers_some = headers.has("Sec-WebSocket-Protocol");
  if (chosen.empty() && (offers_some || !may_be_none)) return websocket_protocol_error("no common subprotocol");
  std::string head =
      begin_head(101, {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}, {"Sec-WebSocket-Accept", websocket_accept(key)}});
  if (!chosen.empty()) head += "Sec-WebSocket-Protocol: " + chosen + "\r\n";
  Connection& connection = exchange.take_over(101);
  if (!connection.write(head + "\r\n") || !connection.flush()) return Error(Code::unavailable, "the client went away");
  connection.set_read_deadline(SteadyTime::max());
  return WebSocket(connection, std::move(chosen));
}

Result<std::optional<Message>> WebSocket::receive() {
  for (;;) {
    std::optional<Frame> frame = TRY(decoder_.next());
    if (!frame) {
      std::array<char, 16 << 10> chunk;
      size_t count = TRY(connection_->read(chunk.data(), chunk.size()));
      if (count == 0) return std::nullopt;
      decoder_.feed({chunk.data(), count});
      continue;
    }
    if (frame->opcode == kPing) {
      if (!send(kPong, frame->payload)) return Error(Code::unavailable, "the client went away");
    } else if (frame->opcode == kClose) {
      send(kClose, std::string_view(frame->payload).substr(0, 2));
      return std::nullopt;
    } else if (frame->opcode != kPong) {
      if ((frame->opcode == kContinuation) != fragmented_.has_value()) return websocket_protocol_error("fragments out of order");
      if (!fragmented_) fragmented_ = frame->opcode;
      if (fragments_.size() + frame->payload.size() > kMessageBytesMax) return Error(Code::too_large, "WebSocket message");
      fragments_ += frame->payload;
      if (!frame->final) continue;
      bool text = *std::exchange(fragmented_, std::nullopt) == kText;
      return Message{text, std::exchange(fragments_, {})};
    }
  }
}

bool WebSocket::send(uint8_t opcode, std::string_view payload) { return send_encoded(encode_frame(opcode, payload)); }

bool WebSocket::send_encoded(std::string_view frames) { return connection_->write(frames) && connection_->flush(); }

void WebSocket::close(uint16_t code, std::string_view reason) { send(kClose, close_payload(code, reason)); }

std::optional<ChannelProtocol> channel_protocol(std::string_view name) {
  if (name == "v5.channel.k8s.io") return ChannelProtocol{5, false};
  if (name == "v4.channel.k8s.io") return ChannelProtocol{4, false};
  if (name == "v4.base64.channel.k8s.io") return ChannelProtocol{4, true};
  if (name == "channel.k8s.io" || name.empty()) return ChannelProtocol{1, false};
  if (name == "base64.channel.k8s.io") return ChannelProtocol{1, true};
  return std::nullopt;
}

std::string encode_channel(const ChannelProtocol& protocol, uint8_t channel, std::string_view bytes) {
  if (protocol.base64) return std::string(1, char('0' + channel)) + base64_encode(bytes);
  return std::string(1, char(channel)).append(bytes);
}

Result<ChannelBytes> decode_channel(const ChannelProtocol& protocol, std::string_view message) {
  if (message.empty()) return websocket_protocol_error("a message without a channel");
  ChannelBytes out{uint8_t(message[0]), std::string(message.substr(1))};
  if (!protocol.base64) return out;
  if (message[0] < '0' || message[0] > '9') return websocket_protocol_error("a channel that is no digit");
  out.channel = uint8_t(message[0] - '0');
  auto bytes = base64_decode(message.substr(1));
  if (!bytes) return websocket_protocol_error("broken base64");
  out.bytes = *std::move(bytes);
  return out;
}

}  // namespace coracle::api
