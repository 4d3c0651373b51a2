// SPDX-License-Identifier: Apache-2.0
// BodyReader: reads the body of one request from its connection, with a Content-Length or in chunks. It decompresses the body and
// enforces a minimum rate. Before it first waits for bytes, it calls the `begin` functions, which release what other requests can
// use meanwhile.
//   connection ──pieces──▶ length | chunks (extensions and trailers are skipped) ──▶ gunzip ──▶ take
// Source: RFC 9112 sections 6 and 7, RFC 9110 section 10.1.1 (100 Continue).
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/api/connection.h"
#include "daemon/api/head.h"
#include "daemon/api/recode.h"
#include "runtime/base/result.h"

namespace coracle::api {

constexpr uint64_t kBodyBytesPerSecond = 4 << 10;  // the minimum average rate of a body, after its grace period

struct BodyPace {
  std::chrono::milliseconds whole{60'000};  // time limit of an ordinary body
  std::chrono::milliseconds grace{5'000};   // no minimum rate for so long
};

// Called around the time in which a request waits for its body, on the thread that reads it. With several of them, the last one
// begins first and ends last.
struct BodyWait {
  std::function<Result<void>()> begin;  // on an error reading stops, and end() is not called
  std::function<Result<void>()> end;    // the body is complete, or reading has failed
};

class BodyReader {
 public:
  using Take = std::function<bool(std::string_view)>;

  // `as_sent`: it is not decompressed. Without a pace, only the connection's own deadline applies.
  BodyReader(Connection& connection, const Head& head, bool as_sent, std::optional<BodyPace> pace);

  // Sends 100 Continue to a client that waits for it, once. Call before the response.
  void invite();
  // Passes the next pieces to `take` until it returns false or the body is complete. Errors: timeout (the body is too slow, or
  // misses the connection's deadline), bad_request (it is malformed or breaks off), cancelled (`take` returned false), and the
  // errors of `waits`.
  Result<void> read(const Take& take, const std::vector<BodyWait>& waits = {});
  // Reads and discards the rest, at most `bytes_max`, and waits at most `timeout` for it. True: the body is complete, and the
  // next request may follow.
  bool drain(size_t bytes_max, std::chrono::milliseconds timeout);

  bool begun() const { return begun_; }
  bool complete() const { return complete_; }

 private:
  Result<void> read_pieces(const Take& take);
  Result<void> take_piece(const Take& take);
  Result<void> next_chunk();
  Result<void> pass_trailers();
  Result<std::string_view> line();  // valid until the next read
  template <typename Read>
  auto paced(Read read) -> decltype(read());
  SteadyTime deadline() const;
  Result<void> step_aside();
  Result<void> step_back();

  Connection& connection_;
  const bool chunked_;
  bool to_invite_;
  std::optional<BodyPace> pace_;
  std::optional<Unpacker> unpacker_;
  const std::vector<BodyWait>* waits_ = nullptr;
  size_t waiting_ = 0;  // number of `waits_` that have begun, counted from the last
  std::optional<SteadyTime> drained_by_;
  SteadyTime began_{};
  bool begun_ = false, complete_ = false, in_chunk_ = false;
  bool broken_ = false;               // the end of the body cannot be determined
  uint64_t left_ = 0, received_ = 0;  // left: of the body, or of the chunk
};

}  // namespace coracle::api
