// SPDX-License-Identifier: Apache-2.0
// The processor time that something takes: a measure of its cost that hardly depends on what else runs on the machine.
#pragma once

#include <time.h>

#include <chrono>

namespace coracle {

// Of the calling thread, or of all threads of this process, up to now.
inline std::chrono::nanoseconds processor_time(clockid_t of) {
  timespec now{};
  ::clock_gettime(of, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}
inline std::chrono::nanoseconds processor_time_of_thread() { return processor_time(CLOCK_THREAD_CPUTIME_ID); }
inline std::chrono::nanoseconds processor_time_of_process() { return processor_time(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace coracle
