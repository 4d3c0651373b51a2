// SPDX-License-Identifier: Apache-2.0
// See websocket.h.
#include "ctl/websocket.h"

namespace coracle::ctl {

std::string encode_frame(Opcode opcode, std::string_view payload, std::array<uint8_t, 4> mask) {
  std::string frame;
  frame.reserve(payload.size() + 14);
  frame += char(0x80 | uint8_t(opcode));
  auto put = [&](uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) frame += char(uint8_t(value >> (8 * i)));
  };
  if (payload.size() < 126) put(0x80 | payload.size(), 1);
  else if (payload.size() < 65536) put(0x80 | 126, 1), put(payload.size(), 2);
  else put(0x80 | 127, 1), put(payload.size(), 8);
  for (uint8_t byte : mask) frame += char(byte);
  for (size_t i = 0; i < payload.size(); ++i) frame += char(uint8_t(payload[i]) ^ mask[i % 4]);
  return frame;
}

Result<std::optional<Message>> MessageReader::next() {
  for (;;) {
    auto byte = [&](size_t at) { return uint8_t(buffer_[at]); };
    if (buffer_.size() < 2) return std::optional<Message>();
    bool final = byte(0) & 0x80, masked = byte(1) & 0x80;
    auto opcode = Opcode(byte(0) & 0x0f);
    if (byte(0) & 0x70) return Error(Code::invalid, "websocket: reserved bits are set");
    if (masked) return Error(Code::invalid, "websocket: the server masks its frames");
    uint64_t size = byte(1) & 0x7f;
    size_t head = 2;
    if (size >= 126) {
      size_t more = size == 126 ? 2 : 8;
      if (buffer_.size() < head + more) return std::optional<Message>();
      size = 0;
      for (size_t i = 0; i < more; ++i) size = size << 8 | byte(head + i);
      head += more;
    }
    bool control = uint8_t(opcode) >= 8;
    if (control && (!final || size > 125)) return Error(Code::invalid, "websocket: malformed control frame");
    if (size > kMessageBytesMax || (partial_ && partial_->payload.size() + size > kMessageBytesMax))
      return Error(Code::too_large, "websocket: the message is too large");
    if (buffer_.size() < head + size) return std::optional<Message>();
    std::string payload = buffer_.substr(head, size);
    buffer_.erase(0, head + size);
    if (control) return std::optional(Message{opcode, std::move(payload)});
    if (opcode == Opcode::continuation) {
      if (!partial_) return Error(Code::invalid, "websocket: a continuation of nothing");
      partial_->payload += payload;
    } else if (opcode == Opcode::text || opcode == Opcode::binary) {
      if (partial_) return Error(Code::invalid, "websocket: a message within a message");
      partial_ = Message{opcode, std::move(payload)};
    } else {
      return Error(Code::invalid, "websocket: unknown opcode");
    }
    if (final) return std::exchange(partial_, std::nullopt);
  }
}

}  // namespace coracle::ctl
