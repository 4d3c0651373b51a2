// SPDX-License-Identifier: Apache-2.0
// RetryAfter: after how many seconds those who are turned away should come back: one, and the longer the more there are of them.
// Doubled when three times as many as seconds were refused in that time, less by one when fewer than seconds were. Pure.
// Source: apiserver util/flowcontrol, dropped requests.
#pragma once

#include <cstdint>
#include <deque>

namespace coracle::fairness {

constexpr int64_t kRetryAfterMax = 32;  // seconds

class RetryAfter {
 public:
  // One was turned away at that second, of any clock that does not go back.
  void refused(int64_t second);
  int64_t seconds() const { return seconds_; }

 private:
  struct Second {
    int64_t when, count;
  };
  void judge(int64_t now);

  std::deque<Second> history_;  // ascending; the last one is still counted
  int64_t seconds_ = 1;
  int64_t doubled_ = INT64_MIN / 2;  // when
};

}  // namespace coracle::fairness
