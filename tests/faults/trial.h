// SPDX-License-Identifier: Apache-2.0
// Shared by all examinations: parsing a container's report, comparing reports, and trying each fault.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/faults/machine.h"
#include "tests/faults/tracer.h"
#include "tests/faults/verdict.h"

namespace coracle::faults {

constexpr int kSaidByExec = 7;  // inmate's exit code

std::string slurp(const std::filesystem::path& path);

// The report of inmate with classified namespaces: "host", "container" (those of `container`'s report), "own".
std::string lines_in(const std::string& said, const std::string& container);
std::string first_difference(const std::string& want, const std::string& got);  // "" = no difference

// Removes the files that may stay.
Machine without_files(Machine machine, const std::function<bool(const std::filesystem::path&)>& may_stay);
// A complete program in a seccomp cache of that name, or the cache itself: kept for the next container.
bool is_seccomp_cache(const std::filesystem::path& path, const char* name);
// The machine's state, once it has not changed for a tenth of a second; ended processes may still be vanishing. At most five
// seconds.
Machine look_settled(Tracer& tracer, const std::function<Machine()>& look);
// The differences to `before`, once they no longer get fewer; at most two seconds.
std::string what_stays(Tracer& tracer, const Machine& before, const std::function<Machine()>& look);

// From the environment: CORACLE_LONG=1: all faults, otherwise a part of each kind; CORACLE_FAULTS_ONLY: only those whose "process
// call" matches the pattern; CORACLE_FAULTS_LOG: the file for all trials.
struct Wanted {
  int at_most_of_a_kind = 0;  // 0 = all
  std::string only, log;
  static Wanted from_environment();
  std::string log_of(const std::string& name) const { return log.empty() ? "" : log + "." + name; }
};
// Tries a call again that was not made this time. `clear`: called after a trial that left something behind.
void try_each(const std::vector<Call>& calls, const Wanted& wanted, Verdict& verdict,
              const std::function<Trial(const Fault&)>& try_one, const std::function<void()>& clear);

}  // namespace coracle::faults
