// SPDX-License-Identifier: Apache-2.0
// WebSocket frames and their channels: the decoded frames are the same however the bytes were split.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/api/websocket.h"

namespace {

std::string decode(std::string_view bytes, size_t step) {
  using namespace coracle::api;
  FrameDecoder decoder;
  std::string seen;
  for (size_t at = 0; at < bytes.size(); at += step) {
    decoder.feed(bytes.substr(at, step));
    for (;;) {
      auto frame = decoder.next();
      if (!frame) return seen + "error";
      if (!*frame) break;
      seen += char('0' + (*frame)->opcode) + (*frame)->payload + ";";
      for (const char* protocol : {"v5.channel.k8s.io", "base64.channel.k8s.io"})
        (void)decode_channel(*channel_protocol(protocol), (*frame)->payload);
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (decode(bytes, 1) != decode(bytes, size + 1)) std::abort();
  return 0;
}
