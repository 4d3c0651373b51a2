// SPDX-License-Identifier: Apache-2.0
// BodyReader: the body of one request, read from its connection: of a known length or in chunks, unpacked where it is packed,
// and no slower than it may be. Before the first wait for bytes that have not come the request is asked to step aside: others
// can have its place meanwhile.
//   connection ──pieces──▶ length | chunks (extensions and trailers are passed over) ──▶ gunzip ──▶ take
// Source: RFC 9112 sections 6 and 7, RFC 9110 section 10.1.1 (100 Continue).
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/api/head.h"
#include "daemon/api/recode.h"
#include "daemon/api/tls.h"
#include "runtime/base/result.h"

namespace coracle::api {

constexpr uint64_t kBodyBytesPerSecond = 4 << 10;  // the least that a body brings on the average, after its grace

struct BodyPace {
  std::chrono::milliseconds whole{60'000};  // no ordinary body takes longer
  std::chrono::milliseconds grace{5'000};   // none has to be faster
};

// What happens around the time in which a request waits for its body. Both in the thread that reads it. Of several the last
// begins first and ends last: what was taken last is given back first.
struct BodyWait {
  std::function<Result<void>()> begin;  // an error ends the reading; then there is no end()
  std::function<Result<void>()> end;    // the body is whole, or broke off
};

class BodyReader {
 public:
  using Take = std::function<bool(std::string_view)>;

  // `as_sent`: it is not unpacked. Without a pace the connection's own deadline counts.
  BodyReader(TlsConnection& connection, const Head& head, bool as_sent, std::optional<BodyPace> pace);

  // Tells a client that waits for it to send the body. Does nothing the second time. Before anything is answered.
  void invite();
  // Hands over the next pieces until `take` returns false or the body is complete. Errors: timeout (it comes too slowly, or not
  // within the connection's deadline), bad_request (it breaks off, or is malformed), cancelled (`take` wanted no more), and what
  // `waits` say.
  Result<void> read(const Take& take, const std::vector<BodyWait>& waits = {});
  // Reads what is left, `bytes_max` at most, and waits so long for it. True: it is complete, and the next request may follow.
  bool drain(size_t bytes_max, std::chrono::milliseconds patience);

  bool begun() const { return begun_; }
  bool complete() const { return complete_; }

 private:
  Result<void> read_pieces(const Take& take);
  Result<void> take_piece(const Take& take);
  Result<void> next_chunk();
  Result<void> pass_trailers();
  Result<std::string> line();
  template <typename Read>
  auto paced(Read read) -> decltype(read());
  SteadyTime deadline() const;
  Result<void> step_aside();
  Result<void> step_back();

  TlsConnection& connection_;
  const bool chunked_;
  bool to_invite_;
  std::optional<BodyPace> pace_;
  std::optional<Unpacker> unpacker_;
  const std::vector<BodyWait>* waits_ = nullptr;
  size_t waiting_ = 0;  // of `waits_`, those that have begun, from the last on
  std::optional<SteadyTime> drained_by_;
  SteadyTime began_{};
  bool begun_ = false, complete_ = false, in_chunk_ = false;
  bool broken_ = false;               // nobody knows where its end is
  uint64_t left_ = 0, received_ = 0;  // left: of the body, or of the chunk
};

}  // namespace coracle::api
