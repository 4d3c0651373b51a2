// SPDX-License-Identifier: Apache-2.0
// StopLimit: bounds a part of the process's work that may hang in the kernel, because a disk or a server does not answer. It
// cannot interrupt that work, so what it calls then has to end the process.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "runtime/base/guarded.h"

namespace coracle {

class StopLimit {
 public:
  // Calls `overdue` from a thread of its own if this object still exists after `within`. The destructor waits for that call.
  StopLimit(std::chrono::milliseconds within, std::function<void()> overdue);

 private:
  Guarded<bool> done_{false};  // only waited for, until a stop is requested
  std::jthread thread_;
};

}  // namespace coracle
