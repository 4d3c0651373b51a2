// SPDX-License-Identifier: Apache-2.0
// The machine's state as far as it belongs to the test: recorded before and after, since nothing may be left behind. The tests
// run in their own pid, mount and IPC namespaces, so that everything in them is theirs.
#pragma once

#include <map>
#include <set>
#include <string>

namespace coracle::faults {

// Moves the process into its own pid and mount namespaces with its own /dev/shm and /run. The caller's process waits for the new
// one and exits with its status. A second call does nothing. Errors: prints a line and exits with 77 where this is not possible.
void enter_own_machine();
bool is_to_end();  // a signal has asked us to stop: clean up first

struct Places {
  std::string directory;  // all files below it count, except those below `own`
  std::string own;
  std::string token;  // cgroups with this in their path count
};

using Machine = std::map<std::string, std::multiset<std::string>>;  // "mounts" → lines
Machine look(const Places& places);
// "+ cgroups: /…" for each difference, separated by "; ". Empty: no difference.
std::string difference(const Machine& before, const Machine& after);

std::string cgroup2_mount();                   // "" = none
void remove_cgroups(const std::string& path);  // with all descendants

}  // namespace coracle::faults
