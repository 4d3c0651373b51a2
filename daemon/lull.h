// SPDX-License-Identifier: Apache-2.0
// Lull: when is the work over, so that what it left in memory may go back? Pure: told how much was done, it says whether to rest
// now and when to look again. Looks come while there is work and twice afterwards; then none before somebody asks for something.
//   work ─▶ look, look, … every kLookPause ─▶ little to do, twice ─▶ rest ─▶ once more when the threads that worked have gone ─▶
//   nothing
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace coracle {

class Lull {
 public:
  static constexpr std::chrono::seconds kLookPause{2};
  static constexpr std::chrono::seconds kOnceMore{25};  // longer than a thread of the API's crew waits for work
  // Requests and changes between two looks. Up to kLittle it is quiet; up to kModest a rest harms nobody, and comes after
  // kLooksMax such looks: some clients never leave a pause.
  static constexpr uint64_t kLittle = 20, kModest = 200;
  static constexpr int kLooksMax = 15;
  static constexpr uint64_t kWorthIt = 50;  // less leaves next to nothing behind
  static constexpr uint64_t kUnasked =
      1000;  // of the daemon's own doing, which nobody tells of: leases alone take hours for that

  struct Verdict {
    bool rest = false;
    std::optional<std::chrono::seconds> look_again;
  };
  // `done`: requests and changes of all time.
  Verdict look(uint64_t done);
  // Whether so much was done since the last rest that it is time to look, though nobody asked for anything.
  bool is_overdue(uint64_t done) const { return done - rested_ >= kUnasked; }

 private:
  uint64_t last_ = 0, rested_ = 0;          // what was done at the last look and at the last rest
  int quiet_looks_ = 0, modest_looks_ = 0;  // one after the other, until now
  bool once_more_ = false;
};

}  // namespace coracle
