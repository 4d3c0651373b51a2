// SPDX-License-Identifier: Apache-2.0
// RetryAfter: the seconds after which rejected clients should retry: one, and more with more rejections. With a value of n
// seconds, it doubles after 3 n rejections in n seconds, and decreases by one after fewer than n. Pure. Source: apiserver
// util/flowcontrol, dropped requests.
#pragma once

#include <cstdint>
#include <deque>

namespace coracle::flowcontrol {

constexpr int64_t kRetryAfterMax = 32;  // seconds

class RetryAfter {
 public:
  // Records a rejection at that second of a monotonic clock.
  void refused(int64_t second);
  int64_t seconds() const { return seconds_; }

 private:
  struct Second {
    int64_t when, count;
  };
  void judge(int64_t now);

  std::deque<Second> history_;  // ascending; the last one is still being counted
  int64_t seconds_ = 1;
  int64_t doubled_ = INT64_MIN / 2;  // time of the last doubling
};

}  // namespace coracle::flowcontrol
