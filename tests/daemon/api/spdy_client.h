// SPDX-License-Identifier: Apache-2.0
// A SPDY client for tests: it opens streams, sends data, and collects what arrives until a condition holds.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "daemon/api/spdy.h"
#include "tests/daemon/api/raw_client.h"

namespace coracle::api {

class SpdyClient {
 public:
  struct Stream {
    std::string bytes;
    bool replied = false, ended = false, reset = false;
  };

  // `wrap`, `receive`: transform the bytes on the wire; by default they do nothing.
  explicit SpdyClient(RawClient& connection) : connection_(connection) {}
  std::function<std::string(std::string)> wrap = [](std::string bytes) { return bytes; };
  std::function<std::string()> receive = [this] { return connection_.receive_some(); };

  uint32_t open(spdy::HeaderList headers, bool fin = false) {
    uint32_t id = std::exchange(next_, next_ + 2);
    send(encoder_.syn_stream({id, std::move(headers), fin, false}));
    return id;
  }
  void send(const std::string& bytes) { connection_.send(wrap(bytes)); }
  void write(uint32_t stream, std::string_view bytes, bool fin = false) { send(spdy::FrameEncoder::data(stream, bytes, fin)); }

  const Stream& stream(uint32_t id) { return streams_[id]; }
  uint32_t pong = 0;
  std::optional<uint32_t> gone_away;  // the status of GOAWAY
  bool at_end = false;

  // Receives until the condition holds. Returns false if the connection ended before.
  bool until(const std::function<bool()>& done) {
    while (!done()) {
      std::string bytes = receive();
      if (bytes.empty()) return at_end = true, done();
      decoder_.feed(bytes);
      while (auto frame = MUST(decoder_.next())) take(*frame);
    }
    return true;
  }
  bool until_ended(uint32_t id) {
    return until([&] { return streams_[id].ended || streams_[id].reset; }) && streams_[id].ended;
  }
  bool until_end() {
    (void)until([] { return false; });
    return at_end;
  }

 private:
  void take(spdy::Frame& frame) {
    if (auto* data = std::get_if<spdy::Data>(&frame)) {
      Stream& stream = streams_[data->stream];
      EXPECT_TRUE(stream.replied) << "Go's client throws away what comes before the reply";
      EXPECT_FALSE(stream.ended);
      stream.bytes += data->bytes, stream.ended |= data->fin;
    }
    if (auto* reply = std::get_if<spdy::SynReply>(&frame)) streams_[reply->stream].replied = true;
    if (auto* reset = std::get_if<spdy::RstStream>(&frame)) streams_[reset->stream].reset = true;
    if (auto* ping = std::get_if<spdy::Ping>(&frame)) pong = ping->id;
    if (auto* away = std::get_if<spdy::GoAway>(&frame)) gone_away = away->status;
  }

  RawClient& connection_;
  spdy::FrameEncoder encoder_;
  spdy::FrameDecoder decoder_;
  std::map<uint32_t, Stream> streams_;
  uint32_t next_ = 1;
};

// A client's WebSocket frame.
inline std::string masked_frame(uint8_t opcode, std::string payload) {
  std::string frame{char(0x80 | opcode)};
  if (payload.size() < 126) frame += char(0x80 | payload.size());
  else frame += std::string{char(0x80 | 126), char(payload.size() >> 8), char(payload.size() & 0xff)};
  frame += "abcd";
  for (size_t i = 0; i < payload.size(); i++) payload[i] = char(payload[i] ^ "abcd"[i % 4]);
  return frame + payload;
}

// The next frame from the server: opcode and payload. Opcode 0: the connection ended.
inline std::pair<uint8_t, std::string> receive_frame(RawClient& socket) {
  std::string head = socket.receive_exactly(2);
  if (head.size() < 2) return {0, ""};
  size_t size = uint8_t(head[1]);
  if (size == 126 || size == 127) {
    std::string more = socket.receive_exactly(size == 126 ? 2 : 8);
    size = 0;
    for (unsigned char byte : more) size = size << 8 | byte;
  }
  return {uint8_t(head[0] & 15), socket.receive_exactly(size)};
}

}  // namespace coracle::api
