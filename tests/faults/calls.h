// SPDX-License-Identifier: Apache-2.0
// Knowledge about system calls for fault injection: names, a description of the arguments, and plausible errors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace coracle::faults {

std::string name_of_call(int number);
bool is_brk(int number);
// "/dev/null", "<pipe>", "PR_SET_NO_NEW_PRIVS", "'text' to /proc/N/oom_score_adj": without numbers that differ between runs.
std::string detail_of(pid_t tid, int number, const uint64_t arguments[6]);

// Calls of the loader and the C library before main.
bool belongs_to_startup(const std::string& name, const std::string& detail);

// Whether the successful call changes a file system: names, content, permissions, or their durability.
bool changes_files(const std::string& name, const uint64_t arguments[6]);

struct Failing {
  int error = 0;         // 0: this call cannot fail
  bool is_done = false;  // the call is executed nevertheless
};
Failing failing_of(const std::string& name, const std::string& detail);

}  // namespace coracle::faults
