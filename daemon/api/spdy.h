// SPDX-License-Identifier: Apache-2.0
// SPDY/3.1 frames, in and out: what kubectl before 1.31 and client-go speak for exec, attach and port-forward. Pure: bytes in,
// frames out; streams and windows are spdy_session.h's, the connection is its caller's.
//   0: [1|version 15|type 16] [flags 8|length 24] payload      a control frame
//   0: [0|stream 31]          [flags 8|length 24] bytes        data
// Header blocks are compressed by one zlib stream for the life of a connection and each direction, over a dictionary that both
// sides know: frames must be encoded and decoded in the order in which they travel.
// Source: SPDY Protocol, draft 3.1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::api::spdy {

constexpr size_t kControlBytesMax = 16 << 10;      // payload of a control frame, compressed
constexpr size_t kHeaderBlockBytesMax = 64 << 10;  // the same, decompressed
constexpr uint32_t kHeadersMax = 100;
constexpr size_t kDataPieceMax = 16 << 10;  // a longer data frame is handed over in pieces
constexpr uint32_t kDataBytesMax = (1 << 24) - 1;
constexpr int64_t kWindowInitial = 64 << 10;  // bytes, of each stream and of the connection, until somebody says otherwise
constexpr int64_t kWindowMax = 0x7fffffff;
constexpr uint32_t kStreamIdMax = 0x7fffffff;

using HeaderList = std::vector<std::pair<std::string, std::string>>;  // names in lower case; several values joined by NUL

struct SynStream {
  uint32_t stream = 0;
  HeaderList headers;
  bool fin = false, unidirectional = false;
};
struct SynReply {
  uint32_t stream = 0;
  HeaderList headers;
  bool fin = false;
};
enum class ResetStatus : uint32_t {
  protocol_error = 1,
  invalid_stream,
  refused_stream,
  unsupported_version,
  cancel,
  internal_error,
  flow_control_error
};
struct RstStream {
  uint32_t stream = 0;
  uint32_t status = 0;
};
enum SettingId : uint32_t { kMaxConcurrentStreams = 4, kInitialWindowSize = 7 };
struct Settings {
  std::vector<std::pair<uint32_t, uint32_t>> values;  // id and value
};
struct Ping {
  uint32_t id = 0;  // odd: the client's
};
enum class GoAwayStatus : uint32_t { ok = 0, protocol_error, internal_error };
struct GoAway {
  uint32_t last_stream = 0;
  uint32_t status = 0;
};
struct HeadersFrame {
  uint32_t stream = 0;
  HeaderList headers;
  bool fin = false;
};
struct WindowUpdate {
  uint32_t stream = 0;  // 0: the connection
  uint32_t bytes = 0;
};
struct Data {  // a whole frame or a piece of one
  uint32_t stream = 0;
  std::string bytes;
  bool fin = false;  // with the last piece
};
using Frame = std::variant<SynStream, SynReply, RstStream, Settings, Ping, GoAway, HeadersFrame, WindowUpdate, Data>;

std::string_view find_header(const HeaderList& headers, std::string_view name);  // "" when absent

class Deflater;  // zlib over the dictionary
class Inflater;

class FrameDecoder {
 public:
  FrameDecoder();
  ~FrameDecoder();
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next frame; nothing: more bytes are needed. Frames of unknown types are passed over. After an error the connection
  // cannot be read any further. Errors: bad_request (the protocol was broken), too_large.
  Result<std::optional<Frame>> next();

 private:
  Result<std::optional<Frame>> next_piece();
  Result<std::optional<Frame>> read_control(uint16_t type, uint8_t flags, std::string_view payload);
  Result<HeaderList> read_headers(std::string_view block);

  std::string buffer_;
  size_t used_ = 0;  // of the buffer
  bool in_data_ = false, data_fin_ = false;
  uint32_t data_stream_ = 0;
  size_t data_left_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

class FrameEncoder {
 public:
  FrameEncoder();
  ~FrameEncoder();
  std::string syn_stream(const SynStream& frame);  // a client's
  std::string syn_reply(const SynReply& frame);
  std::string headers(const HeadersFrame& frame);
  // The rest has no headers, and no order.
  static std::string rst_stream(uint32_t stream, ResetStatus status);
  static std::string settings(const Settings& frame);
  static std::string ping(uint32_t id);
  static std::string go_away(uint32_t last_stream, GoAwayStatus status);
  static std::string window_update(uint32_t stream, uint32_t bytes);
  static std::string data(uint32_t stream, std::string_view bytes, bool fin = false);  // of at most kDataBytesMax

 private:
  std::string block(const HeaderList& headers);
  std::unique_ptr<Deflater> deflater_;
};

}  // namespace coracle::api::spdy
