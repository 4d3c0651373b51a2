// SPDX-License-Identifier: Apache-2.0
// Elapsed: the time since a moment that an object records in wall time. A board without a clock battery starts in 1970 and jumps
// to the present. That jump must not turn seconds into decades, and setting the clock back must not restart the measurement. So
// the wall clock is read once, when a moment is first seen; after that the steady clock is used.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"

namespace coracle::controller {

class Elapsed {
 public:
  explicit Elapsed(const Clock& clock) : clock_(clock) {}
  // Never negative: a moment in the future counts as now, until the wall clock has passed it. The measurement is stored by
  // `owner` and `what`; another `moment` starts a new one.
  std::chrono::nanoseconds since(const std::string& owner, const std::string& what, WallTime moment) const;
  void forget(const std::string& owner);

 private:
  struct Seen {
    WallTime moment;
    SteadyTime at;
    std::chrono::nanoseconds before;  // the time since the moment at `at`
  };
  const Clock& clock_;
  mutable Guarded<std::map<std::pair<std::string, std::string>, Seen>> seen_;
};

}  // namespace coracle::controller
