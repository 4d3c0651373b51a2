// SPDX-License-Identifier: Apache-2.0
// BackOff: how long something that failed waits before it is tried again: 10 s, doubled up to 5 min, and from the start
// once it has gone well for 10 min. The first failure waits for nothing: a container that crashes once restarts at once.
// Source: client-go util/flowcontrol backoff (semantics), kubelet's CrashLoopBackOff and ImagePullBackOff.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/base/clock.h"

namespace coracle::node {

class BackOff {
 public:
  static constexpr std::chrono::seconds kFirst{10}, kLongest{300}, kForgottenAfter{600};

  // Until when a try that failed at `failed` must wait, if it must.
  std::optional<SteadyTime> until(SteadyTime failed) const {
    if (wait_ == std::chrono::seconds(0) || forgotten(failed)) return std::nullopt;
    return failed + wait_;
  }
  // A new try begins after a failure at `failed`: should it fail too, the next one waits longer.
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
