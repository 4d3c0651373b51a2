// SPDX-License-Identifier: Apache-2.0
// See http.h. Source: RFC 9112 section 7.1 (chunked coding).
#include "daemon/api/http.h"

#include <algorithm>
#include <cstdio>

namespace coracle::api {

Result<std::string> Exchange::read_body(size_t bytes_max) {
  std::string text;
  bool fits = true;
  auto read = stream_body([&](std::string_view piece) {
    fits = text.size() + piece.size() <= bytes_max;
    if (fits) text.append(piece);
    return fits;
  });
  if (!fits) return Error(Code::too_large, "Request entity too large: limit is " + std::to_string(bytes_max));
  if (!read) return read.take_error();
  return text;
}

void Exchange::drop_body() {
  if (!head.has_body() || body_read_) return;
  size_t drained = 0;
  connection.set_read_deadline(std::chrono::steady_clock::now() + kDrainTime);
  (void)stream_body([&](std::string_view piece) { return (drained += piece.size()) <= kDrainBytesMax; });
  connection.set_read_deadline(SteadyTime::max());
}

std::stop_token Exchange::notice_peer() {
  drop_body();
  return notice_peer_ ? notice_peer_() : std::stop_token();
}

ChunkedAnswer::ChunkedAnswer(Exchange& exchange, std::string_view content_type,
                             const std::vector<std::pair<std::string, std::string>>& headers)
    : exchange_(exchange), connection_(exchange.take_over()) {
  connection_.write(begin_head(200, headers) + "Transfer-Encoding: chunked\r\nContent-Type: " + std::string(content_type) +
                    "\r\n\r\n");
  connection_.flush();
}

bool ChunkedAnswer::write(std::string_view bytes) {
  if (bytes.empty()) return !connection_.broken();  // an empty chunk would be the end
  char size[24];
  int digits = std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return connection_.write({size, size_t(digits)}) && connection_.write(bytes) && connection_.write("\r\n");
}

bool ChunkedAnswer::flush() { return connection_.flush(); }

void ChunkedAnswer::end() { exchange_.reusable = connection_.write("0\r\n\r\n") && connection_.flush(); }

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
                                                                {409, "Conflict"},
                                                                {410, "Gone"},
                                                                {413, "Request Entity Too Large"},
                                                                {415, "Unsupported Media Type"},
                                                                {422, "Unprocessable Entity"},
                                                                {429, "Too Many Requests"},
                                                                {500, "Internal Server Error"},
                                                                {501, "Not Implemented"},
                                                                {503, "Service Unavailable"},
                                                                {504, "Gateway Timeout"}};
  auto found = std::find_if(std::begin(kTexts), std::end(kTexts), [&](const auto& row) { return row.first == status; });
  return found == std::end(kTexts) ? "Unknown" : found->second;
}

std::string begin_head(int status, const std::vector<std::pair<std::string, std::string>>& headers) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " " + std::string(status_text(status)) + "\r\n";
  for (const auto& [name, value] : headers) head += name + ": " + value + "\r\n";
  return head;
}

}  // namespace coracle::api
