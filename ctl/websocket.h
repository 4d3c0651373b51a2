// SPDX-License-Identifier: Apache-2.0
// WebSocket framing for a client: encodes masked frames and decodes whole messages. Pure: the caller owns the socket. Source:
// RFC 6455.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::ctl {

enum class Opcode : uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };
constexpr bool is_data(Opcode opcode) { return opcode == Opcode::text || opcode == Opcode::binary; }

struct Message {
  Opcode opcode;  // text, binary, close, ping or pong
  std::string payload;
};

// One unfragmented frame. `mask` must be new random bytes for each frame.
std::string encode_frame(Opcode opcode, std::string_view payload, std::array<uint8_t, 4> mask);

class MessageReader {
 public:
  static constexpr size_t kMessageBytesMax = 16u << 20;
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole message, or nothing if more bytes are needed. Errors: invalid for a malformed frame; too_large.
  Result<std::optional<Message>> next();

 private:
  std::string buffer_;
  std::optional<Message> partial_;  // the fragments received so far
};

}  // namespace coracle::ctl
