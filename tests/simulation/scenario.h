// SPDX-License-Identifier: Apache-2.0
// Scenario: the sequence of events for one seed. It consists of storms, in which everything happens in any order, and calms
// without faults, in which everything must come to rest and stay there.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace coracle::simulation {

struct Outcome {
  std::vector<std::string> violations;  // none: the scenario passed
  std::string about;                    // its kinds of events
  uint64_t print = 0;                   // checksum of all writes: equal for the same seed
  uint64_t steps = 0, calls = 0, deaths = 0;
};

// Runs the scenario on this thread. `trace`: output for the trace, or nullptr.
Outcome run_scenario(uint64_t seed, std::FILE* trace);

}  // namespace coracle::simulation
