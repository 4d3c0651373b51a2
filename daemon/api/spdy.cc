// SPDX-License-Identifier: Apache-2.0
// See spdy.h.
#include "daemon/api/spdy.h"

#include <zlib.h>

#include <algorithm>

namespace coracle::api::spdy {
namespace {

constexpr uint16_t kVersion = 3;
constexpr size_t kFrameHead = 8;
constexpr uint8_t kFlagFin = 1, kFlagUnidirectional = 2;
constexpr size_t kSettingsMax = 64;

enum Type : uint16_t {
  kSynStream = 1,
  kSynReply = 2,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kHeaders = 8,
  kWindowUpdate = 9
};

// The predefined dictionary: words with a length prefix, and a tail without.
constexpr std::string_view kWords[] = {"options",
                                       "head",
                                       "post",
                                       "put",
                                       "delete",
                                       "trace",
                                       "accept",
                                       "accept-charset",
                                       "accept-encoding",
                                       "accept-language",
                                       "accept-ranges",
                                       "age",
                                       "allow",
                                       "authorization",
                                       "cache-control",
                                       "connection",
                                       "content-base",
                                       "content-encoding",
                                       "content-language",
                                       "content-length",
                                       "content-location",
                                       "content-md5",
                                       "content-range",
                                       "content-type",
                                       "date",
                                       "etag",
                                       "expect",
                                       "expires",
                                       "from",
                                       "host",
                                       "if-match",
                                       "if-modified-since",
                                       "if-none-match",
                                       "if-range",
                                       "if-unmodified-since",
                                       "last-modified",
                                       "location",
                                       "max-forwards",
                                       "pragma",
                                       "proxy-authenticate",
                                       "proxy-authorization",
                                       "range",
                                       "referer",
                                       "retry-after",
                                       "server",
                                       "te",
                                       "trailer",
                                       "transfer-encoding",
                                       "upgrade",
                                       "user-agent",
                                       "vary",
                                       "via",
                                       "warning",
                                       "www-authenticate",
                                       "method",
                                       "get",
                                       "status",
                                       "200 OK",
                                       "version",
                                       "HTTP/1.1",
                                       "url",
                                       "public",
                                       "set-cookie",
                                       "keep-alive",
                                       "origin"};
constexpr std::string_view kTail =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information"
    "204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error"
    "501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, "
    "Fri, "
    "Sat, Sun, "
    "GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

Error broken(std::string_view how) { return Error(Code::bad_request, "SPDY: " + std::string(how)); }

void put(std::string& out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += char(value >> shift & 0xff);
}

uint32_t big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (unsigned char byte : bytes) value = value << 8 | byte;
  return value;
}

const std::string& dictionary() {
  static const std::string text = [] {
    std::string made;
    for (std::string_view word : kWords) put(made, word.size(), 4), made += word;
    return made.append(kTail);
  }();
  return text;
}
const Bytef* dictionary_bytes() { return reinterpret_cast<const Bytef*>(dictionary().data()); }

// zlib does not write to its input, although its type is not const.
Bytef* bytes_of(const char* text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text)); }

std::string control(Type type, uint8_t flags, std::string_view payload) {
  std::string frame;
  frame.reserve(kFrameHead + payload.size());
  put(frame, 0x8000 | kVersion, 2);
  put(frame, type, 2);
  put(frame, flags, 1);
  put(frame, payload.size(), 3);
  return frame.append(payload);
}

std::string two_numbers(uint32_t first, uint32_t second) {
  std::string payload;
  put(payload, first, 4);
  put(payload, second, 4);
  return payload;
}

bool is_lower(std::string_view name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

uint32_t stream_of(std::string_view payload, size_t at = 0) { return big_endian(payload.substr(at, 4)) & kStreamIdMax; }

Result<Settings> read_settings(std::string_view payload) {
  if (payload.size() < 4) return broken("truncated SETTINGS");
  uint32_t count = big_endian(payload.substr(0, 4));
  if (count > kSettingsMax) return Error(Code::too_large, "SPDY: too many settings");
  if (payload.size() != 4 + size_t(count) * 8) return broken("malformed SETTINGS");
  Settings out;
  for (size_t at = 4; at < payload.size(); at += 8)
    out.values.emplace_back(big_endian(payload.substr(at, 4)) & 0xffffff, big_endian(payload.substr(at + 4, 4)));
  return out;
}

}  // namespace

class Deflater {
 public:
  Deflater() {
    ready_ = deflateInit(&stream_, Z_DEFAULT_COMPRESSION) == Z_OK &&
             deflateSetDictionary(&stream_, dictionary_bytes(), uInt(dictionary().size())) == Z_OK;
  }
  Deflater(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream_); }

  std::string block(std::string_view plain) {
    std::string out(deflateBound(&stream_, uLong(plain.size())) + 64, '\0');  // a flush adds a few bytes to the bound
    stream_.next_in = bytes_of(plain.data()), stream_.avail_in = uInt(plain.size());
    stream_.next_out = bytes_of(out.data()), stream_.avail_out = uInt(out.size());
    bool done = ready_ && deflate(&stream_, Z_SYNC_FLUSH) == Z_OK;
    out.erase(done ? out.size() - stream_.avail_out : 0);
    return out;
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

class Inflater {
 public:
  Inflater() { ready_ = inflateInit(&stream_) == Z_OK; }
  Inflater(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  Result<std::string> block(std::string_view packed) {
    if (!ready_) return Error(Code::internal, "SPDY: no memory for zlib");
    std::string out;
    stream_.next_in = bytes_of(packed.data()), stream_.avail_in = uInt(packed.size());
    for (;;) {
      size_t before = out.size();
      out.resize(std::min(before + kStep, kHeaderBlockBytesMax + 1));
      stream_.next_out = bytes_of(out.data()) + before, stream_.avail_out = uInt(out.size() - before);
      int done = inflate(&stream_, Z_SYNC_FLUSH);
      bool full = stream_.avail_out == 0;
      out.erase(out.size() - stream_.avail_out);
      if (done == Z_NEED_DICT) {
        int known = inflateSetDictionary(&stream_, dictionary_bytes(), uInt(dictionary().size()));
        if (known != Z_OK) return broken("another dictionary");
        continue;
      }
      if (done != Z_OK && done != Z_BUF_ERROR) return broken("broken compression of headers");
      if (out.size() > kHeaderBlockBytesMax) return Error(Code::too_large, "SPDY: headers");
      if (stream_.avail_in == 0 && !full) return out;
      if (done == Z_BUF_ERROR && !full) return broken("broken compression of headers");
    }
  }

 private:
  static constexpr size_t kStep = 4 << 10;
  z_stream stream_{};
  bool ready_ = false;
};

std::string_view find_header(const HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

FrameDecoder::FrameDecoder() : inflater_(std::make_unique<Inflater>()) {}
FrameDecoder::~FrameDecoder() = default;

Result<std::optional<Frame>> FrameDecoder::next() {
  for (;;) {
    if (in_data_) return next_piece();
    std::string_view have = std::string_view(buffer_).substr(used_);
    if (have.size() < kFrameHead) {
      buffer_.erase(0, std::exchange(used_, 0));
      return std::nullopt;
    }
    uint8_t flags = uint8_t(have[4]);
    size_t size = big_endian(have.substr(5, 3));
    if (!(have[0] & 0x80)) {
      in_data_ = true, data_stream_ = stream_of(have), data_fin_ = flags & kFlagFin, data_left_ = size;
      used_ += kFrameHead;
      if (data_stream_ == 0) return broken("data for no stream");
      continue;
    }
    uint16_t version = uint16_t(big_endian(have.substr(0, 2)) & 0x7fff), type = uint16_t(big_endian(have.substr(2, 2)));
    if (version != kVersion) return broken("version " + std::to_string(version));
    if (size > kControlBytesMax) return Error(Code::too_large, "SPDY: a control frame");
    if (have.size() < kFrameHead + size) return std::nullopt;
    std::string payload(have.substr(kFrameHead, size));
    used_ += kFrameHead + size;
    std::optional<Frame> frame = TRY(read_control(type, flags, payload));
    if (frame) return frame;
  }
}

Result<std::optional<Frame>> FrameDecoder::next_piece() {
  size_t count = std::min({data_left_, buffer_.size() - used_, kDataPieceMax});
  if (count == 0 && data_left_ > 0) return std::nullopt;
  Data piece{data_stream_, buffer_.substr(used_, count), false};
  used_ += count, data_left_ -= count;
  in_data_ = data_left_ > 0;
  piece.fin = !in_data_ && data_fin_;
  if (used_ == buffer_.size()) buffer_.clear(), used_ = 0;
  return std::optional<Frame>(std::move(piece));
}

Result<std::optional<Frame>> FrameDecoder::read_control(uint16_t type, uint8_t flags, std::string_view payload) {
  bool fin = flags & kFlagFin;
  size_t stream_in_front = type == kSynStream ? 10 : type == kSynReply || type == kHeaders ? 4 : 0;
  if (payload.size() < stream_in_front) return broken("a truncated frame");
  bool two_words = type == kRstStream || type == kGoAway || type == kWindowUpdate;
  if (two_words && payload.size() != 8) return broken("a frame of the wrong size");
  switch (type) {
    case kSynStream: {
      HeaderList headers = TRY(read_headers(payload.substr(10)));
      if (stream_of(payload) == 0) return broken("SYN_STREAM of no stream");
      return std::optional<Frame>(SynStream{stream_of(payload), std::move(headers), fin, bool(flags & kFlagUnidirectional)});
    }
    case kSynReply: {
      HeaderList headers = TRY(read_headers(payload.substr(4)));
      return std::optional<Frame>(SynReply{stream_of(payload), std::move(headers), fin});
    }
    case kHeaders: {
      HeaderList headers = TRY(read_headers(payload.substr(4)));
      return std::optional<Frame>(HeadersFrame{stream_of(payload), std::move(headers), fin});
    }
    case kRstStream:
      if (stream_of(payload) == 0) return broken("RST_STREAM of no stream");
      return std::optional<Frame>(RstStream{stream_of(payload), big_endian(payload.substr(4))});
    case kSettings: {
      Settings settings = TRY(read_settings(payload));
      return std::optional<Frame>(std::move(settings));
    }
    case kPing:
      if (payload.size() != 4) return broken("a frame of the wrong size");
      return std::optional<Frame>(Ping{big_endian(payload)});
    case kGoAway: return std::optional<Frame>(GoAway{stream_of(payload), big_endian(payload.substr(4))});
    case kWindowUpdate: {
      uint32_t bytes = big_endian(payload.substr(4)) & kStreamIdMax;
      if (bytes == 0) return broken("WINDOW_UPDATE by nothing");
      return std::optional<Frame>(WindowUpdate{stream_of(payload), bytes});
    }
    default: return std::nullopt;
  }
}

Result<HeaderList> FrameDecoder::read_headers(std::string_view packed) {
  std::string block = TRY(inflater_->block(packed));
  std::string_view left = block;
  auto number = [&]() -> Result<uint32_t> {
    if (left.size() < 4) return broken("truncated headers");
    uint32_t value = big_endian(left.substr(0, 4));
    left.remove_prefix(4);
    return value;
  };
  auto text = [&]() -> Result<std::string> {
    uint32_t size = TRY(number());
    if (left.size() < size) return broken("truncated headers");
    std::string taken(left.substr(0, size));
    left.remove_prefix(size);
    return taken;
  };
  uint32_t count = TRY(number());
  if (count > kHeadersMax) return Error(Code::too_large, "SPDY: too many headers");
  HeaderList headers;
  for (uint32_t i = 0; i < count; i++) {
    std::string name = TRY(text());
    std::string value = TRY(text());
    if (!is_lower(name)) return broken("a header's name is not in lower case");
    for (const auto& [other, unused] : headers)
      if (other == name) return broken("a header stands twice");
    headers.emplace_back(std::move(name), std::move(value));
  }
  if (!left.empty()) return broken("bytes behind the headers");
  return headers;
}

FrameEncoder::FrameEncoder() : deflater_(std::make_unique<Deflater>()) {}
FrameEncoder::~FrameEncoder() = default;

std::string FrameEncoder::block(const HeaderList& headers) {
  std::string plain;
  put(plain, headers.size(), 4);
  for (const auto& [name, value] : headers)
    for (const std::string& text : {name, value}) put(plain, text.size(), 4), plain += text;
  return deflater_->block(plain);
}

std::string FrameEncoder::syn_stream(const SynStream& frame) {
  std::string payload = two_numbers(frame.stream, 0);  // no associated stream
  put(payload, 0, 2);                                  // priority and slot
  payload += block(frame.headers);
  return control(kSynStream, uint8_t((frame.fin ? kFlagFin : 0) | (frame.unidirectional ? kFlagUnidirectional : 0)), payload);
}

std::string FrameEncoder::syn_reply(const SynReply& frame) {
  std::string payload;
  put(payload, frame.stream, 4);
  return control(kSynReply, frame.fin ? kFlagFin : 0, payload + block(frame.headers));
}

std::string FrameEncoder::headers(const HeadersFrame& frame) {
  std::string payload;
  put(payload, frame.stream, 4);
  return control(kHeaders, frame.fin ? kFlagFin : 0, payload + block(frame.headers));
}

std::string FrameEncoder::rst_stream(uint32_t stream, ResetStatus status) {
  return control(kRstStream, 0, two_numbers(stream, uint32_t(status)));
}

std::string FrameEncoder::settings(const Settings& frame) {
  std::string payload;
  put(payload, frame.values.size(), 4);
  for (const auto& [id, value] : frame.values) payload += two_numbers(id & 0xffffff, value);
  return control(kSettings, 0, payload);
}

std::string FrameEncoder::ping(uint32_t id) {
  std::string payload;
  put(payload, id, 4);
  return control(kPing, 0, payload);
}

std::string FrameEncoder::go_away(uint32_t last_stream, GoAwayStatus status) {
  return control(kGoAway, 0, two_numbers(last_stream, uint32_t(status)));
}

std::string FrameEncoder::window_update(uint32_t stream, uint32_t bytes) {
  return control(kWindowUpdate, 0, two_numbers(stream, bytes));
}

std::string FrameEncoder::data(uint32_t stream, std::string_view bytes, bool fin) {
  std::string frame;
  frame.reserve(kFrameHead + bytes.size());
  put(frame, stream & kStreamIdMax, 4);
  put(frame, fin ? kFlagFin : 0, 1);
  put(frame, bytes.size(), 3);
  return frame.append(bytes);
}

}  // namespace coracle::api::spdy
