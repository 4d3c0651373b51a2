// SPDX-License-Identifier: Apache-2.0
// What every examination does, whatever it drives: read what a container said of itself, compare, and try each fault.
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

// What inmate said, with namespaces by whose they are: "host", "container" (those that `container` speaks of), "own".
std::string lines_in(const std::string& said, const std::string& container);
std::string first_difference(const std::string& want, const std::string& got);  // "" = none

// Without the files that may stay.
Machine without_files(Machine machine, const std::function<bool(const std::filesystem::path&)>& may_stay);
// A complete program in a cache of that name, or the cache itself: kept for the next container.
bool is_seccomp_cache(const std::filesystem::path& path, const char* name);
// The machine, once nothing changes any more for a tenth of a second; what has ended may still be going. At most five seconds.
Machine look_settled(Tracer& tracer, const std::function<Machine()>& look);
// What differs from `before`, once it is no longer getting less; at most two seconds.
std::string what_stays(Tracer& tracer, const Machine& before, const std::function<Machine()>& look);

// As the environment has it: CORACLE_LONG=1 all faults, else a part of each kind; CORACLE_FAULTS_ONLY those whose "process
// call" matches the pattern; CORACLE_FAULTS_LOG where every trial is written.
struct Wanted {
  int at_most_of_a_kind = 0;  // 0 = all
  std::string only, log;
  static Wanted from_environment();
  std::string log_of(const std::string& name) const { return log.empty() ? "" : log + "." + name; }
};
// `clear`: after a trial that has left things in disorder.
void try_each(const std::vector<Call>& calls, const Wanted& wanted, Verdict& verdict,
              const std::function<Trial(const Fault&)>& try_one, const std::function<void()>& clear);

}  // namespace coracle::faults
