// SPDX-License-Identifier: Apache-2.0
// WebSocket frames.
#include "ctl/websocket.h"

#include <gtest/gtest.h>

namespace coracle::ctl {
namespace {

// A frame from a server: as encode_frame, without a mask.
std::string server_frame(uint8_t first, std::string_view payload) {
  std::string frame(1, char(first));
  if (payload.size() < 126) frame += char(payload.size());
  else frame.append(1, char(126)).append(1, char(payload.size() >> 8)).append(1, char(payload.size() & 255));
  return frame.append(payload);
}

TEST(Websocket, frames_are_masked) {
  EXPECT_EQ(encode_frame(Opcode::binary, "ab", {1, 2, 3, 4}),
            std::string("\x82\x82\x01\x02\x03\x04") + char('a' ^ 1) + char('b' ^ 2));
  EXPECT_EQ(encode_frame(Opcode::binary, std::string(300, 'x'), {0, 0, 0, 0}).substr(0, 4), std::string("\x82\xfe\x01\x2c", 4));
  EXPECT_EQ(encode_frame(Opcode::binary, std::string(70000, 'x'), {0, 0, 0, 0}).size(), 70000u + 14);
}

TEST(Websocket, reads_messages_in_pieces) {
  std::string bytes = server_frame(0x02, "hel") + server_frame(0x89, "ping") + server_frame(0x80, "lo") +
                      server_frame(0x82, std::string(200, 'y'));
  MessageReader reader;
  std::vector<Message> got;
  for (char c : bytes) {
    reader.feed(std::string_view(&c, 1));
    for (;;) {
      auto message = reader.next();
      ASSERT_TRUE(message);
      if (!*message) break;
      got.push_back(**message);
    }
  }
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].payload, "ping");
  EXPECT_EQ(got[1].payload, "hello");
  EXPECT_EQ(got[2].payload, std::string(200, 'y'));
}

TEST(Websocket, refuses_malformed_frames) {
  for (std::string bytes : {server_frame(0xf2, "x"), server_frame(0x80, "x"), server_frame(0x09, "x"), server_frame(0x83, "x"),
                            std::string("\x82\x81xxxxx"), std::string("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10)}) {
    MessageReader reader;
    reader.feed(bytes);
    EXPECT_FALSE(reader.next());
  }
}

}  // namespace
}  // namespace coracle::ctl
