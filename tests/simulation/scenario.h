// SPDX-License-Identifier: Apache-2.0
// Scenario: one seed, one story. Storms, in which everything happens in any order, and calms, in which nothing is disturbed any
// more and everything has to come to rest, and to stay there.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace coracle::simulation {

struct Outcome {
  std::vector<std::string> violations;  // none: the scenario passed
  std::string about;                    // what it consists of
  uint64_t print = 0;                   // of all that was written: the same seed gives the same
  uint64_t steps = 0, calls = 0, deaths = 0;
};

// Runs it on this thread. `trace`: where the story is told, or nullptr.
Outcome run_scenario(uint64_t seed, std::FILE* trace);

}  // namespace coracle::simulation
