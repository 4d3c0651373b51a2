// SPDX-License-Identifier: Apache-2.0
// Inlet: what comes from an upstream, read as HTTP: the head of an answer, then its body however its end is told. Buffers what
// one read gave; a body of any size passes in pieces.
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

class Inlet {
 public:
  // `wish` is asked while the upstream is waited for.
  Inlet(Upstream& upstream, GivesUp& wish) : upstream_(upstream), wish_(&wish) {}
  void listen_to(GivesUp& wish) { wish_ = &wish; }  // from now on

  // The head of the answer that counts: interim ones (100 to 199) but 101 are passed over. Errors: unavailable, cancelled.
  Result<AnswerHead> read_head();
  const std::string& raw_head() const { return raw_head_; }  // as it came

  // Before the body: how it ends. A HEAD's answer, 204 and 304 have none.
  void begin_body(const AnswerHead& head, bool none);
  // The next piece, valid until the next call; empty: it is complete. Errors: as above, also where it breaks off.
  Result<std::string_view> read_body();
  const std::string& trailers() const { return trailers_; }  // lines, behind a chunked body

  // What came behind the head, whatever it is; for a connection that becomes another protocol's. "" at its end.
  Result<std::string_view> read_raw();

 private:
  enum class Ends { at_once, by_length, by_chunks, with_connection };
  Result<bool> fill();                              // false: the other side has ended
  Result<std::string> read_line(size_t bytes_max);  // with its end
  Result<std::string_view> take(uint64_t bytes_max);
  Result<void> begin_chunk();
  Result<void> end_chunk();
  Result<void> read_trailers();

  Upstream& upstream_;
  GivesUp* wish_;
  std::string buffer_;
  size_t used_ = 0;
  std::string raw_head_, trailers_;
  Ends ends_ = Ends::at_once;
  uint64_t left_ = 0;      // of the body, or of the chunk
  bool in_chunk_ = false;  // its end is still to be read
  bool complete_ = false;
};

}  // namespace coracle::api
