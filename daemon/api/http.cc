// SPDX-License-Identifier: Apache-2.0
// See http.h. Source: RFC 9112 section 7.1 (chunked coding).
#include "daemon/api/http.h"

#include <algorithm>
#include <cstdio>

namespace coracle::api {

Result<std::string> Exchange::read_body(size_t bytes_max) {
  auto too_large = [&] {
    hangs_up = true;  // the rest of the body is just as long
    return Error(Code::too_large, "Request entity too large: limit is " + std::to_string(bytes_max));
  };
  if (head.content_length.value_or(0) > bytes_max) return too_large();
  std::string text;
  bool fits = true;
  auto take = [&](std::string_view piece) {
    fits = text.size() + piece.size() <= bytes_max;
    if (fits) text.append(piece);
    return fits;
  };
  auto read = stream_body(std::ref(take));
  if (!fits) return too_large();
  late_ = !read && read.error().code() == Code::timeout;
  if (!read) return read.take_error();
  return text;
}

void Exchange::drop_body() {
  if (body_.complete() || body_.begun()) return;
  (void)body_.drain(kDrainBytesMax, kDrainTime);
  connection.set_read_deadline(SteadyTime::max());
}

std::stop_token Exchange::notice_peer() {
  drop_body();
  return notice_peer_ ? notice_peer_() : std::stop_token();
}

ChunkedAnswer::ChunkedAnswer(Exchange& exchange, std::string_view content_type,
                             const std::vector<std::pair<std::string, std::string>>& headers)
    : exchange_(exchange), connection_(exchange.take_over()), chunked_(exchange.head.supports_chunked) {
  bool stays = chunked_ && exchange.head.keep_alive;
  std::string head = begin_head(200, headers, !chunked_);
  if (chunked_) head += "Transfer-Encoding: chunked\r\n";
  head += connection_header(exchange.head, stays);
  connection_.write(head + "Content-Type: " + std::string(content_type) + "\r\n\r\n");
  connection_.flush();
}

bool ChunkedAnswer::write(std::string_view bytes) { return write(std::span(&bytes, 1)); }

bool ChunkedAnswer::write(std::span<const std::string_view> pieces) {
  size_t bytes = 0;
  for (std::string_view piece : pieces) bytes += piece.size();
  if (bytes == 0) return !connection_.broken();  // an empty chunk would end the body
  char size[24];
  int digits = std::snprintf(size, sizeof size, "%zx\r\n", bytes);
  connection_.expect(bytes + sizeof size);
  if (chunked_ && !connection_.write({size, size_t(digits)})) return false;
  for (std::string_view piece : pieces)
    if (!connection_.write(piece)) return false;
  return !chunked_ || connection_.write("\r\n");
}

bool ChunkedAnswer::flush() { return connection_.flush(); }

void ChunkedAnswer::end() {
  bool ended = (!chunked_ || connection_.write("0\r\n\r\n")) && connection_.flush();
  exchange_.reusable = ended && chunked_;
}

std::string_view status_text(int status) {
  static constexpr std::pair<int, std::string_view> kTexts[] = {{101, "Switching Protocols"},
                                                                {200, "OK"},
                                                                {201, "Created"},
                                                                {202, "Accepted"},
                                                                {204, "No Content"},
                                                                {301, "Moved Permanently"},
                                                                {304, "Not Modified"},
                                                                {400, "Bad Request"},
                                                                {401, "Unauthorized"},
                                                                {403, "Forbidden"},
                                                                {404, "Not Found"},
                                                                {405, "Method Not Allowed"},
                                                                {406, "Not Acceptable"},
                                                                {408, "Request Timeout"},
                                                                {409, "Conflict"},
                                                                {410, "Gone"},
                                                                {413, "Request Entity Too Large"},
                                                                {415, "Unsupported Media Type"},
                                                                {417, "Expectation Failed"},
                                                                {422, "Unprocessable Entity"},
                                                                {429, "Too Many Requests"},
                                                                {500, "Internal Server Error"},
                                                                {501, "Not Implemented"},
                                                                {503, "Service Unavailable"},
                                                                {504, "Gateway Timeout"},
                                                                {505, "HTTP Version Not Supported"}};
  auto found = std::find_if(std::begin(kTexts), std::end(kTexts), [&](const auto& row) { return row.first == status; });
  return found == std::end(kTexts) ? "Unknown" : found->second;
}

std::string begin_head(int status, const std::vector<std::pair<std::string, std::string>>& headers, bool old) {
  constexpr size_t kUsual = 512;  // bytes; the caller adds some lines
  std::string head;
  head.reserve(kUsual);
  head.append(old ? "HTTP/1.0 " : "HTTP/1.1 ")
      .append(std::to_string(status))
      .append(" ")
      .append(status_text(status))
      .append("\r\n");
  for (const auto& [name, value] : headers) head.append(name).append(": ").append(value).append("\r\n");
  return head;
}

std::string_view connection_header(const Head& asked, bool stays) {
  if (!stays) return "Connection: close\r\n";
  return asked.supports_chunked ? "" : "Connection: keep-alive\r\n";  // HTTP/1.0 closes by default
}

}  // namespace coracle::api
