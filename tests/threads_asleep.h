// SPDX-License-Identifier: Apache-2.0
// Waits until threads of this process wait for something themselves, for tests that let them go on then.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace coracle {

// Whether the thread sleeps or has ended. Source: proc_pid_stat(5).
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  return stat.empty() || stat.find(") S ") != stat.npos;
}

// Blocks until all of them are asleep, for as long as it takes to look twenty times: a lock that is held for a moment is no rest.
// Returns false if that does not happen within a minute.
inline bool come_to_rest(const std::vector<pid_t>& threads) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (int looks = 0; looks < 20; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    if (std::chrono::steady_clock::now() > end) return false;
    looks = std::ranges::all_of(threads, is_asleep) ? looks + 1 : 0;
  }
  return true;
}

}  // namespace coracle
