// SPDX-License-Identifier: Apache-2.0
// See response_reader.h.
#include "daemon/api/proxy/response_reader.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::api {
namespace {

constexpr size_t kUpstreamReadBytes = 16 << 10;
constexpr size_t kChunkLineMax = 4 << 10;  // a chunk's size line with its extensions
constexpr int kInterimMax = 5;             // Source: Go net/http

Error broken(const std::string& why) {
  return Error(Code::unavailable, "net/http: HTTP/1.x transport connection broken: " + why);
}

}  // namespace

Result<bool> ResponseReader::fill() {
  buffer_.erase(0, std::exchange(used_, 0));
  size_t size = buffer_.size();
  buffer_.resize(size + kUpstreamReadBytes);
  auto count = upstream_.read(buffer_.data() + size, kUpstreamReadBytes, *cancel_);
  buffer_.resize(size + (count ? *count : 0));
  if (!count) return count.take_error();
  return *count > 0;
}

Result<std::string> ResponseReader::read_line(size_t bytes_max) {
  for (;;) {
    size_t end = buffer_.find('\n', used_);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(used_, end + 1 - used_);
      used_ = end + 1;
      return line;
    }
    if (buffer_.size() - used_ > bytes_max) return broken("line too long");
    bool more = TRY(fill());
    if (!more) return Error(Code::unavailable, buffer_.empty() ? "EOF" : "unexpected EOF");
  }
}

Result<AnswerHead> ResponseReader::read_head() {
  for (int seen = 0; seen <= kInterimMax; seen++) {
    raw_head_.clear();
    std::string line;
    do {
      line = TRY(read_line(kAnswerHeadBytesMax));
      raw_head_ += line;
      if (raw_head_.size() > kAnswerHeadBytesMax)
        return broken("server response headers exceeded " + std::to_string(kAnswerHeadBytesMax) + " bytes");
    } while (!trim(line).empty());
    auto head = vet_answer_head(raw_head_);
    if (!head) return broken(head.error().text());
    if (head->status >= 200 || head->status == 101) return head;
  }
  return broken("too many 1xx informational responses");
}

void ResponseReader::begin_body(const AnswerHead& head, bool none) {
  bool empty = none || head.status == 204 || head.status == 304;
  ends_ = empty ? Ends::at_once : head.chunked ? Ends::by_chunks : head.content_length ? Ends::by_length : Ends::with_connection;
  left_ = ends_ == Ends::by_length ? *head.content_length : 0;
}

Result<std::string_view> ResponseReader::read_raw() { return take(kUpstreamReadBytes); }

// Returns buffered bytes, at most `bytes_max`; reads if there are none. "" at the end.
Result<std::string_view> ResponseReader::take(uint64_t bytes_max) {
  if (used_ == buffer_.size()) {
    bool more = TRY(fill());
    if (!more) return std::string_view();
  }
  size_t count = size_t(std::min<uint64_t>(bytes_max, buffer_.size() - used_));
  std::string_view piece(buffer_.data() + used_, count);
  used_ += count;
  return piece;
}

Result<std::string_view> ResponseReader::read_body() {
  if (ends_ == Ends::with_connection) return take(kUpstreamReadBytes);
  if (ends_ == Ends::by_chunks && left_ == 0 && !complete_) TRY(begin_chunk());
  if (left_ == 0) return std::string_view();
  std::string_view piece = TRY(take(std::min<uint64_t>(left_, kUpstreamReadBytes)));
  if (piece.empty()) return Error(Code::unavailable, "unexpected EOF");
  left_ -= piece.size();
  return piece;
}

Result<void> ResponseReader::begin_chunk() {
  if (in_chunk_) TRY(end_chunk());
  std::string line = TRY(read_line(kChunkLineMax));
  std::string_view size = trim(std::string_view(line).substr(0, line.find(';')));
  auto count = parse_number<uint64_t>(size, 16);
  if (!count) return Error(Code::unavailable, "malformed chunked encoding");
  left_ = *count;
  in_chunk_ = left_ > 0;
  if (!in_chunk_) TRY(read_trailers());
  return {};
}

Result<void> ResponseReader::end_chunk() {
  std::string line = TRY(read_line(kChunkLineMax));
  if (!trim(line).empty()) return Error(Code::unavailable, "malformed chunked encoding");
  return {};
}

Result<void> ResponseReader::read_trailers() {
  for (;;) {
    std::string line = TRY(read_line(kAnswerHeadBytesMax));
    if (trim(line).empty()) break;
    trailers_ += std::string(trim(line)) + "\r\n";
    if (trailers_.size() > kAnswerHeadBytesMax) return broken("trailers too long");
  }
  complete_ = true;
  if (!trailers_.empty() && !vet_answer_head("HTTP/1.1 200\r\n" + trailers_))
    return Error(Code::unavailable, "malformed trailers");
  return {};
}

}  // namespace coracle::api
