// SPDX-License-Identifier: Apache-2.0
// SPDY frames: the decoded frames are the same however the bytes were split, and can be encoded again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/api/spdy.h"

namespace {

using namespace coracle::api::spdy;

void say(std::string& seen, const Frame& frame) {
  seen += char('0' + frame.index());
  if (auto* syn = std::get_if<SynStream>(&frame))
    for (const auto& [name, value] : syn->headers) seen += name + "=" + value + ",";
  if (auto* data = std::get_if<Data>(&frame)) seen += std::to_string(data->stream) + data->bytes + (data->fin ? "." : "");
}

// Pieces of data are joined, since their boundaries depend on how the bytes were split.
std::string decode(std::string_view bytes, size_t step, std::string& data) {
  FrameDecoder decoder;
  FrameEncoder encoder;
  std::string seen;
  for (size_t at = 0; at < bytes.size(); at += step) {
    decoder.feed(bytes.substr(at, step));
    for (;;) {
      auto frame = decoder.next();
      if (!frame) return seen + "error";
      if (!*frame) break;
      say(std::holds_alternative<Data>(**frame) ? data : seen, **frame);
      if (auto* piece = std::get_if<Data>(&**frame); piece && piece->bytes.size() > kDataPieceMax) std::abort();
      if (auto* syn = std::get_if<SynStream>(&**frame))
        if (encoder.syn_stream(*syn).empty()) std::abort();
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string one_by_one, at_once;
  if (decode(bytes, 1, one_by_one) != decode(bytes, size + 1, at_once)) std::abort();
  return 0;
}
