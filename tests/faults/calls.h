// SPDX-License-Identifier: Apache-2.0
// What is to be known of system calls to have them fail: names, what a call was about, how it would fail.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace coracle::faults {

std::string name_of_call(int number);
bool is_brk(int number);
// "/dev/null", "<pipe>", "PR_SET_NO_NEW_PRIVS", "'text' to /proc/N/oom_score_adj": no numbers that differ from run to
// run.
std::string detail_of(pid_t tid, int number, const uint64_t arguments[6]);

// What a loader and a C library do before main.
bool belongs_to_startup(const std::string& name, const std::string& detail);

// Whether the call, if it succeeds, changes what is on a file system: names, content, rights, or what of them lasts.
bool changes_files(const std::string& name, const uint64_t arguments[6]);

struct Failing {
  int error = 0;         // 0: this call cannot fail, whatever happens
  bool is_done = false;  // it is carried out all the same
};
Failing failing_of(const std::string& name, const std::string& detail);

}  // namespace coracle::faults
