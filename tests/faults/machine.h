// SPDX-License-Identifier: Apache-2.0
// What is there on the machine, as far as it is ours: taken before and after, for nothing may stay behind. The tests
// run with process ids, mounts and shared memory of their own, so that what there is, is theirs.
#pragma once

#include <map>
#include <set>
#include <string>

namespace coracle::faults {

// The rest of the process goes on with process ids, mounts and /dev/shm of its own; who called waits for it, and ends as it does.
// Twice the same is harmless. Errors: a line, the process ends with 77 where that cannot be.
void enter_own_machine();
bool is_to_end();  // somebody has asked us to: what there is has to go first

struct Places {
  std::string directory;  // all files beneath it count, but for those beneath `own`
  std::string own;
  std::string token;  // cgroups with this in their path count
};

using Machine = std::map<std::string, std::multiset<std::string>>;  // "mounts" → lines
Machine look(const Places& places);
// "+ cgroups: /…" for each that differs, by "; ". Empty: the same.
std::string difference(const Machine& before, const Machine& after);

std::string cgroup2_mount();                   // "" = none
void remove_cgroups(const std::string& path);  // with all beneath it

}  // namespace coracle::faults
