// SPDX-License-Identifier: Apache-2.0
// SPDY frames, by value: they survive encoding and decoding, however the input is split; a malformed frame ends the connection.
#include "daemon/api/spdy.h"

#include <gtest/gtest.h>

namespace coracle::api::spdy {
namespace {

std::string bytes(std::initializer_list<int> list) {
  std::string out;
  for (int byte : list) out += char(byte);
  return out;
}

std::vector<Frame> decode(std::string_view all, size_t step) {
  FrameDecoder decoder;
  std::vector<Frame> frames;
  for (size_t at = 0; at < all.size(); at += step) {
    decoder.feed(all.substr(at, step));
    for (;;) {
      auto frame = decoder.next();
      EXPECT_TRUE(frame) << (frame ? "" : frame.error().text());
      if (!frame || !*frame) break;
      frames.push_back(std::move(**frame));
    }
  }
  return frames;
}

Code refusal(std::string_view all) {
  FrameDecoder decoder;
  decoder.feed(all);
  for (;;) {
    auto frame = decoder.next();
    if (!frame) return frame.error().code();
    if (!*frame) return Code::internal;  // incomplete, or accepted
  }
}

const HeaderList kStdin{{"streamtype", "stdin"}};

TEST(Spdy, frames_come_out_as_they_went_in_however_they_arrive) {
  FrameEncoder encoder;
  std::string all = encoder.syn_stream({1, kStdin, false, false});
  all += encoder.syn_stream({3, {{"streamtype", "error"}, {"port", "80"}}, true, false});
  all += encoder.syn_reply({1, {}, false});
  all += encoder.headers({3, {{"a", "b"}}, true});
  all += FrameEncoder::rst_stream(5, ResetStatus::cancel) + FrameEncoder::settings({{{kInitialWindowSize, 1000}}}) +
         FrameEncoder::ping(7);
  all += FrameEncoder::window_update(0, 12) + FrameEncoder::data(1, "hello", true) + FrameEncoder::go_away(3, GoAwayStatus::ok);
  for (size_t step : {size_t(1), size_t(7), all.size()}) {
    auto frames = decode(all, step);
    std::string data;
    std::erase_if(frames, [&](const Frame& frame) {
      if (auto* piece = std::get_if<Data>(&frame)) data += piece->bytes + (piece->fin ? "." : "");
      return std::holds_alternative<Data>(frame);
    });
    EXPECT_EQ(data, "hello.");
    ASSERT_EQ(frames.size(), 9u) << step;
    EXPECT_EQ(std::get<SynStream>(frames[0]).headers, kStdin);
    EXPECT_FALSE(std::get<SynStream>(frames[0]).fin);
    EXPECT_EQ(std::get<SynStream>(frames[1]).stream, 3u);
    EXPECT_TRUE(std::get<SynStream>(frames[1]).fin);
    EXPECT_EQ(find_header(std::get<SynStream>(frames[1]).headers, "port"), "80");
    EXPECT_EQ(std::get<SynReply>(frames[2]).stream, 1u);
    EXPECT_TRUE(std::get<HeadersFrame>(frames[3]).fin);
    EXPECT_EQ(std::get<RstStream>(frames[4]).status, uint32_t(ResetStatus::cancel));
    EXPECT_EQ(std::get<Settings>(frames[5]).values, (std::vector<std::pair<uint32_t, uint32_t>>{{kInitialWindowSize, 1000}}));
    EXPECT_EQ(std::get<Ping>(frames[6]).id, 7u);
    EXPECT_EQ(std::get<WindowUpdate>(frames[7]).bytes, 12u);
    EXPECT_EQ(std::get<GoAway>(frames[8]).last_stream, 3u);
  }
}

TEST(Spdy, speaks_the_dictionary_that_others_speak) {
  FrameEncoder encoder;
  std::string frame = encoder.syn_reply({1, {}, false});
  // The zlib header names a preset dictionary by its Adler-32, which is in the standard's text.
  EXPECT_EQ(frame.substr(12, 2), bytes({0x78, 0xbb}));
  EXPECT_EQ(frame.substr(14, 4), bytes({0xe3, 0xc6, 0xa7, 0xc2}));
}

TEST(Spdy, a_large_frame_comes_in_pieces_and_ends_with_the_last) {
  std::string big(3 * kDataPieceMax + 5, 'x');
  std::string got;
  size_t pieces = 0, ends = 0;
  for (const Frame& frame : decode(FrameEncoder::data(1, big, true), 100'000)) {
    const Data& data = std::get<Data>(frame);
    EXPECT_LE(data.bytes.size(), kDataPieceMax);
    got += data.bytes, pieces++, ends += data.fin;
    EXPECT_EQ(data.fin, got.size() == big.size());
  }
  EXPECT_EQ(got, big);
  EXPECT_EQ(pieces, 4u);
  EXPECT_EQ(ends, 1u);
}

TEST(Spdy, an_empty_frame_may_end_a_stream) {
  auto frames = decode(FrameEncoder::data(9, "", true), 1);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_TRUE(std::get<Data>(frames[0]).fin);
}

TEST(Spdy, frames_that_nobody_knows_are_passed_over) {
  std::string unknown = bytes({0x80, 3, 0, 99, 0, 0, 0, 2, 1, 2});
  auto frames = decode(unknown + FrameEncoder::ping(1), 3);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(std::get<Ping>(frames[0]).id, 1u);
}

TEST(Spdy, what_is_broken_is_an_error) {
  FrameEncoder encoder;
  std::string syn = encoder.syn_stream({1, kStdin, false, false});
  auto with = [](std::string frame, size_t at, int byte) {
    frame[at] = char(byte);
    return frame;
  };
  auto lone = [](const HeaderList& headers) { return FrameEncoder().syn_stream({1, headers, false, false}); };
  HeaderList many;
  for (int i = 0; i < 101; i++) many.emplace_back("h" + std::to_string(i), "v");
  struct Row {
    const char* name;
    std::string frame;
    Code want;
  };
  for (const Row& row : {
           Row{"another version", with(syn, 1, 2), Code::bad_request},
           Row{"stream 0", FrameEncoder().syn_stream({0, kStdin, false, false}), Code::bad_request},
           Row{"data for stream 0", FrameEncoder::data(0, "x"), Code::bad_request},
           Row{"a truncated SYN_STREAM", bytes({0x80, 3, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1}), Code::bad_request},
           Row{"no zlib", with(syn, 18, 0xff), Code::bad_request},
           Row{"another dictionary", with(syn, 20, 0), Code::bad_request},
           Row{"a RST_STREAM of 4 bytes", bytes({0x80, 3, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1}), Code::bad_request},
           Row{"a PING of 8 bytes", bytes({0x80, 3, 0, 6, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 1}), Code::bad_request},
           Row{"a WINDOW_UPDATE by 0", FrameEncoder::window_update(1, 0), Code::bad_request},
           Row{"settings that are fewer than said", bytes({0x80, 3, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1}), Code::bad_request},
           Row{"too many settings", bytes({0x80, 3, 0, 4, 0, 0, 0, 4, 0x7f, 0, 0, 1}), Code::too_large},
           Row{"a huge control frame", bytes({0x80, 3, 0, 1, 0, 0x7f, 0, 0}), Code::too_large},
           Row{"upper case", lone({{"Streamtype", "x"}}), Code::bad_request},
           Row{"no name", lone({{"", "x"}}), Code::bad_request},
           Row{"a header twice", lone({{"a", "x"}, {"a", "y"}}), Code::bad_request},
           Row{"too many headers", lone(many), Code::too_large},
           Row{"headers that unpack to too much", lone({{"a", std::string(1 << 20, 'x')}}), Code::too_large},
       })
    EXPECT_EQ(refusal(row.frame), row.want) << row.name;
  EXPECT_EQ(refusal(syn), Code::internal) << "the frame that was spoilt above is sound";
}

TEST(Spdy, headers_are_compressed_as_one_stream) {
  FrameEncoder encoder;
  std::string first = encoder.syn_stream({1, {{"streamtype", "data"}, {"port", "8080"}, {"requestid", "0"}}, false, false});
  std::string second = encoder.syn_stream({3, {{"streamtype", "data"}, {"port", "8080"}, {"requestid", "1"}}, false, false});
  EXPECT_LT(second.size(), first.size());
  auto frames = decode(first + second, 1000);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(find_header(std::get<SynStream>(frames[1]).headers, "requestid"), "1");
  EXPECT_EQ(refusal(second), Code::bad_request);  // it depends on the first frame
}

}  // namespace
}  // namespace coracle::api::spdy
