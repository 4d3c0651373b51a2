// SPDX-License-Identifier: Apache-2.0
// WebSocket frames and Kubernetes' channels, by value.
#include "daemon/api/websocket.h"

#include <gtest/gtest.h>

#include "tests/daemon/api/spdy_client.h"

namespace coracle::api {
namespace {

// Like masked_frame, with any first byte: for fragments, reserved bits and unknown opcodes.
std::string masked(uint8_t first, std::string payload) {
  std::string frame = masked_frame(kText, std::move(payload));
  frame[0] = char(first);
  return frame;
}

TEST(WebSocket, answers_the_key_as_the_standard_says) {
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // RFC 6455 section 1.3
}

TEST(WebSocket, decodes_frames_however_they_arrive) {
  for (size_t step : {size_t(1), size_t(3), size_t(1000)}) {
    std::string bytes = masked(0x82, "hello") + masked(0x01, std::string(300, 'x')) + masked(0x80, "");
    FrameDecoder decoder;
    std::vector<Frame> frames;
    for (size_t at = 0; at < bytes.size(); at += step) {
      decoder.feed(std::string_view(bytes).substr(at, step));
      while (auto frame = MUST(decoder.next())) frames.push_back(*frame);
    }
    ASSERT_EQ(frames.size(), 3u);
    EXPECT_EQ(frames[0].payload, "hello");
    EXPECT_EQ(frames[0].opcode, kBinary);
    EXPECT_TRUE(frames[0].final);
    EXPECT_EQ(frames[1].payload, std::string(300, 'x'));
    EXPECT_FALSE(frames[1].final);
    EXPECT_EQ(frames[2].opcode, kContinuation);
  }
}

TEST(WebSocket, refuses_broken_frames) {
  auto decode = [](std::string bytes) {
    FrameDecoder decoder;
    decoder.feed(bytes);
    return decoder.next();
  };
  EXPECT_FALSE(decode(std::string("\x82\x05hello", 7))) << "not masked";
  EXPECT_FALSE(decode(masked(0xc2, "x"))) << "reserved bit";
  EXPECT_FALSE(decode(masked(0x83, "x"))) << "unknown opcode";
  EXPECT_FALSE(decode(masked(0x09, "x"))) << "fragmented ping";
  EXPECT_FALSE(decode(masked(0x89, std::string(126, 'x')))) << "long ping";
  EXPECT_EQ(decode(std::string("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"
                               "abcd",
                               14))
                .error()
                .code(),
            Code::too_large);
}

TEST(WebSocket, encodes_lengths) {
  EXPECT_EQ(encode_frame(kText, "hi"), "\x81\x02hi");
  EXPECT_EQ(encode_frame(kBinary, std::string(200, 'x')).substr(0, 4), std::string("\x82\x7e\x00\xc8", 4));
  EXPECT_EQ(encode_frame(kBinary, std::string(70000, 'x')).substr(0, 10), std::string("\x82\x7f\0\0\0\0\0\x01\x11\x70", 10));
}

TEST(Channels, carry_bytes_or_base64) {
  for (const char* name :
       {"v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io", "v4.base64.channel.k8s.io"}) {
    ChannelProtocol protocol = *channel_protocol(name);
    ChannelBytes back = MUST(decode_channel(protocol, encode_channel(protocol, 1, std::string("a\0b", 3))));
    EXPECT_EQ(back.channel, 1) << name;
    EXPECT_EQ(back.bytes, std::string("a\0b", 3)) << name;
  }
  EXPECT_FALSE(channel_protocol("v9.channel.k8s.io"));
  EXPECT_FALSE(decode_channel({4, false}, ""));
  EXPECT_FALSE(decode_channel({4, true}, "1!!"));
  EXPECT_FALSE(decode_channel({4, true}, "x"));
}

}  // namespace
}  // namespace coracle::api
