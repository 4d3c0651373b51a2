// SPDX-License-Identifier: Apache-2.0
// See stop_limit.h.
#include "daemon/stop_limit.h"

#include <utility>

#include "runtime/base/thread.h"

namespace coracle {

StopLimit::StopLimit(std::chrono::milliseconds within, std::function<void()> overdue)
    : thread_(start_thread("stop-limit", [this, until = std::chrono::steady_clock::now() + within,
                                          overdue = std::move(overdue)](std::stop_token stop) {
        done_.wait_until(
            stop, until, [](bool) { return false; }, [](bool) {});
        if (!stop.stop_requested()) overdue();
      })) {}

}  // namespace coracle
