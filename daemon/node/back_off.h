// SPDX-License-Identifier: Apache-2.0
// BackOff: the delay before a failed action is retried. It starts at 10 s, doubles up to 5 min, and resets after 10 min without a
// failure. The first retry has no delay: a container that crashes once restarts at once. Source: client-go util/flowcontrol
// backoff (semantics), kubelet's CrashLoopBackOff and ImagePullBackOff.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/base/clock.h"

namespace coracle::node {

class BackOff {
 public:
  static constexpr std::chrono::seconds kFirst{10}, kLongest{300}, kForgottenAfter{600};

  // The earliest time of a retry after a failure at `failed`; nullopt if it may begin at once.
  std::optional<SteadyTime> until(SteadyTime failed) const {
    if (wait_ == std::chrono::seconds(0) || forgotten(failed)) return std::nullopt;
    return failed + wait_;
  }
  // Records that a retry begins after a failure at `failed`. The delay after the next failure is longer.
  void next(SteadyTime failed, SteadyTime now) {
    wait_ = wait_ == std::chrono::seconds(0) || forgotten(failed) ? kFirst : std::min(wait_ * 2, kLongest);
    updated_ = now;
  }
  void reset() { wait_ = std::chrono::seconds(0); }
  std::chrono::seconds wait() const { return wait_; }

 private:
  bool forgotten(SteadyTime failed) const { return failed - updated_ > kForgottenAfter; }

  std::chrono::seconds wait_{0};
  SteadyTime updated_{};
};

}  // namespace coracle::node
