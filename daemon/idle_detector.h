// SPDX-License-Identifier: Apache-2.0
// IdleDetector: detects when the daemon has become idle, so that memory can be freed. Pure: it gets the number of requests and
// changes and returns whether to free memory now and when to look again. It is polled while there is work and a few times
// afterwards; then only after the next request.
//   work ─▶ look, look, … every kLookPause ─▶ twice little work ─▶ rest ─▶ rest again when idle threads have ended ─▶ no polling
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace coracle {

class IdleDetector {
 public:
  static constexpr std::chrono::seconds kLookPause{2};
  static constexpr std::chrono::seconds kOnceMore{25};  // longer than the idle time of the API server's threads
  // Numbers of requests and changes between two looks. Up to kLittle the daemon is idle. Up to kModest freeing memory is
  // harmless, and it happens after kLooksMax such looks, because some clients never pause.
  static constexpr uint64_t kLittle = 20, kModest = 200;
  static constexpr int kLooksMax = 15;
  static constexpr uint64_t kWorthIt = 50;  // less work leaves almost no memory to free
  // Changes by the daemon itself, which no request announces: leases alone take hours for that many.
  static constexpr uint64_t kUnasked = 1000;

  struct Verdict {
    bool rest = false;
    std::optional<std::chrono::seconds> look_again;
  };
  // `done`: the total number of requests and changes.
  Verdict look(uint64_t done);
  // Whether there was so much work since the last rest that look() should be called without a request.
  bool is_overdue(uint64_t done) const { return done - rested_ >= kUnasked; }

 private:
  uint64_t last_ = 0, rested_ = 0;          // values of `done` at the last look and at the last rest
  int quiet_looks_ = 0, modest_looks_ = 0;  // consecutive looks until now
  bool once_more_ = false;
};

}  // namespace coracle
