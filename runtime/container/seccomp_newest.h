// SPDX-License-Identifier: Apache-2.0
// Calls that are newer than everything a profile speaks of fail with ENOSYS rather than with what the profile has for
// calls it does not name: programs ask for new calls first and fall back only when there is no such call. A few
// instructions before the program, for each architecture in it: its numbers are its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace coracle::runtime {

class NewestCalls {
 public:
  explicit NewestCalls(const std::vector<uint32_t>& architectures);  // SCMP_ARCH_*
  void add(const std::vector<std::string>& calls);                   // that the profile speaks of
  void answer(std::vector<uint64_t>& program) const;                 // prepends the instructions

 private:
  struct Numbers {  // of one architecture; -1: none
    uint32_t architecture = 0;
    int newest = -1;
  };
  std::vector<Numbers> all_;
};

}  // namespace coracle::runtime
