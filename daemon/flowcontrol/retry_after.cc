// SPDX-License-Identifier: Apache-2.0
// See retry_after.h.
#include "daemon/flowcontrol/retry_after.h"

#include <algorithm>

namespace coracle::flowcontrol {

void RetryAfter::refused(int64_t second) {
  if (!history_.empty() && history_.back().when >= second) {
    history_.back().count++;
    return;
  }
  while (!history_.empty() && second - history_.front().when > std::min(2 * seconds_, kRetryAfterMax)) history_.pop_front();
  judge(second);
  history_.push_back({second, 1});
}

// Adjusts the value by the rejections of the last `seconds_` seconds, without the present one.
void RetryAfter::judge(int64_t now) {
  int64_t refused = 0;
  for (const Second& one : history_)
    if (now - one.when <= seconds_) refused += one.count;
  if (now - doubled_ >= seconds_ && refused >= 3 * seconds_) {
    seconds_ = std::min(2 * seconds_, kRetryAfterMax);
    doubled_ = now;
  } else if (refused < seconds_ && seconds_ > 1) {
    seconds_--;
  }
}

}  // namespace coracle::flowcontrol
