// SPDX-License-Identifier: Apache-2.0
// Elapsed: how long ago a moment was that an object states by wall time. A board without a clock battery starts in 1970 and
// jumps to today: what has lasted seconds must not count for decades then, nor begin anew when the clock is set back. So the
// wall clock is asked once, when a moment is first seen; from there on the steady clock counts.
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
  // Never negative: a moment that lies ahead was just now, until the clock says otherwise. `what` of an owner is remembered
  // with its `moment`; another moment is another beginning.
  std::chrono::nanoseconds since(const std::string& owner, const std::string& what, WallTime moment) const;
  void forget(const std::string& owner);

 private:
  struct Seen {
    WallTime moment;
    SteadyTime at;
    std::chrono::nanoseconds before;  // how long ago it was then
  };
  const Clock& clock_;
  mutable Guarded<std::map<std::pair<std::string, std::string>, Seen>> seen_;
};

}  // namespace coracle::controller
