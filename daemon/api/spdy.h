// SPDX-License-Identifier: Apache-2.0
// Encoder and decoder of SPDY/3.1 frames, which kubectl before 1.31 and client-go use for exec, attach and port-forward. Pure:
// streams and windows are in spdy_session.h, and the caller owns the connection.
//   0: [1|version 15|type 16] [flags 8|length 24] payload      a control frame
//   0: [0|stream 31]          [flags 8|length 24] bytes        data
// Header blocks are compressed. Each direction has one zlib stream for the lifetime of the connection, with a predefined
// dictionary. So frames must be encoded and decoded in the order in which they are sent. Source: SPDY Protocol, draft 3.1.
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
constexpr size_t kDataPieceMax = 16 << 10;  // a longer data frame is delivered in pieces
constexpr uint32_t kDataBytesMax = (1 << 24) - 1;
constexpr int64_t kWindowInitial = 64 << 10;  // bytes, of each stream and of the connection, until it is changed
constexpr int64_t kWindowMax = 0x7fffffff;
constexpr uint32_t kStreamIdMax = 0x7fffffff;

using HeaderList = std::vector<std::pair<std::string, std::string>>;  // names in lower case; multiple values joined by NUL

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
  uint32_t id = 0;  // odd: from the client
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
struct Data {  // a whole frame, or a piece of one
  uint32_t stream = 0;
  std::string bytes;
  bool fin = false;  // set on the last piece
};
using Frame = std::variant<SynStream, SynReply, RstStream, Settings, Ping, GoAway, HeadersFrame, WindowUpdate, Data>;

std::string_view find_header(const HeaderList& headers, std::string_view name);  // "" if absent

class Deflater;  // zlib with the dictionary
class Inflater;

class FrameDecoder {
 public:
  FrameDecoder();
  ~FrameDecoder();
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next frame; nullopt: more bytes are needed. Unknown frame types are skipped. After an error the connection cannot be read
  // any further. Errors: bad_request (protocol error), too_large.
  Result<std::optional<Frame>> next();

 private:
  Result<std::optional<Frame>> next_piece();
  Result<std::optional<Frame>> read_control(uint16_t type, uint8_t flags, std::string_view payload);
  Result<HeaderList> read_headers(std::string_view block);

  std::string buffer_;
  size_t used_ = 0;  // consumed bytes of the buffer
  bool in_data_ = false, data_fin_ = false;
  uint32_t data_stream_ = 0;
  size_t data_left_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

class FrameEncoder {
 public:
  FrameEncoder();
  ~FrameEncoder();
  std::string syn_stream(const SynStream& frame);  // sent by clients
  std::string syn_reply(const SynReply& frame);
  std::string headers(const HeadersFrame& frame);
  // The following frames have no headers, so their order is free.
  static std::string rst_stream(uint32_t stream, ResetStatus status);
  static std::string settings(const Settings& frame);
  static std::string ping(uint32_t id);
  static std::string go_away(uint32_t last_stream, GoAwayStatus status);
  static std::string window_update(uint32_t stream, uint32_t bytes);
  static std::string data(uint32_t stream, std::string_view bytes, bool fin = false);  // at most kDataBytesMax

 private:
  std::string block(const HeaderList& headers);
  std::unique_ptr<Deflater> deflater_;
};

}  // namespace coracle::api::spdy
