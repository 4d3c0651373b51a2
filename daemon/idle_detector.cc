// SPDX-License-Identifier: Apache-2.0
// See idle_detector.h.
#include "daemon/idle_detector.h"

#include <utility>

namespace coracle {

IdleDetector::Verdict IdleDetector::look(uint64_t done) {
  uint64_t since = done - std::exchange(last_, done);
  bool due = done - rested_ >= kWorthIt;
  if (std::exchange(once_more_, false) && !due) return {true, std::nullopt};
  quiet_looks_ = since <= kLittle ? quiet_looks_ + 1 : 0;
  modest_looks_ = since <= kModest ? modest_looks_ + 1 : 0;
  bool quiet = quiet_looks_ >= 2;
  if (due && (quiet || modest_looks_ >= kLooksMax)) {
    rested_ = done;
    quiet_looks_ = modest_looks_ = 0;
    once_more_ = true;
    return {true, kOnceMore};
  }
  if (!quiet) return {false, kLookPause};
  quiet_looks_ = modest_looks_ = 0;
  return {};
}

}  // namespace coracle
