// SPDX-License-Identifier: Apache-2.0
// Dice: all choices of a scenario, derived from its seed, equal on every machine. While a scenario runs, the kernel's random
// numbers are replaced too (dice.cc defines getentropy): uids and name suffixes come from the seed, so that a scenario is
// reproducible.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace coracle::simulation {

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t roll();
  int64_t between(int64_t least, int64_t most);  // both bounds are possible
  bool chance(double probability);               // 0 never, 1 always
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[size_t(between(0, int64_t(from.size()) - 1))];
  }

 private:
  uint64_t state_;
};

// During its lifetime, this thread's requests for kernel random numbers are answered from these dice.
class SeededEntropy {
 public:
  explicit SeededEntropy(uint64_t seed);
  ~SeededEntropy();

 private:
  Dice dice_;
};

}  // namespace coracle::simulation
