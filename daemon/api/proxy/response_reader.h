// SPDX-License-Identifier: Apache-2.0
// ResponseReader: reads an HTTP response from an upstream: the head, then the body with any framing. It buffers one read at a
// time, so a body of any size passes in pieces.
//   Upstream ──bytes──▶ head | body (length, chunks, until the end) | trailers
// Source: RFC 9112 sections 2, 6 and 7.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/api/head.h"
#include "daemon/api/proxy/upstream.h"

namespace coracle::api {

class ResponseReader {
 public:
  // `cancel` is checked during each wait for the upstream.
  ResponseReader(Upstream& upstream, CancelCheck& cancel) : upstream_(upstream), cancel_(&cancel) {}
  void listen_to(CancelCheck& cancel) { cancel_ = &cancel; }  // for the following waits

  // The head of the final response. Interim responses (100 to 199) except 101 are skipped. Errors: unavailable, cancelled.
  Result<AnswerHead> read_head();
  const std::string& raw_head() const { return raw_head_; }  // as received

  // Sets the framing; call before read_body(). `none`: there is no body, as for HEAD, 204 and 304.
  void begin_body(const AnswerHead& head, bool none);
  // The next piece, valid until the next call; empty: the body is complete. Errors: as above, also if it breaks off.
  Result<std::string_view> read_body();
  const std::string& trailers() const { return trailers_; }  // the lines after a chunked body

  // The bytes after the head, for a connection that changes its protocol. "" at the end. Errors: as read_head().
  Result<std::string_view> read_raw();

 private:
  enum class Ends { at_once, by_length, by_chunks, with_connection };
  Result<bool> fill();                              // false: the upstream has closed its side
  Result<std::string> read_line(size_t bytes_max);  // including the line break
  Result<std::string_view> take(uint64_t bytes_max);
  Result<void> begin_chunk();
  Result<void> end_chunk();
  Result<void> read_trailers();

  Upstream& upstream_;
  CancelCheck* cancel_;
  std::string buffer_;
  size_t used_ = 0;
  std::string raw_head_, trailers_;
  Ends ends_ = Ends::at_once;
  uint64_t left_ = 0;      // of the body, or of the chunk
  bool in_chunk_ = false;  // the chunk's end is not read yet
  bool complete_ = false;
};

}  // namespace coracle::api
