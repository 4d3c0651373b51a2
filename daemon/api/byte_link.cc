// SPDX-License-Identifier: Apache-2.0
// See byte_link.h.
#include "daemon/api/byte_link.h"

#include <array>

namespace coracle::api {

Result<std::string> PlainLink::read() {
  std::array<char, 16 << 10> chunk;
  size_t count = TRY(connection_.read(chunk.data(), chunk.size()));
  return std::string(chunk.data(), count);
}

Result<std::string> TunnelLink::read() {
  for (;;) {
    std::optional<Message> message = TRY(socket_.receive());
    if (!message) return std::string();
    if (message->text) return Error(Code::bad_request, "WebSocket protocol: a tunnel takes binary messages");
    if (!message->payload.empty()) return std::move(message->payload);
  }
}

}  // namespace coracle::api
