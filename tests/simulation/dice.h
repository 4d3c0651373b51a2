// SPDX-License-Identifier: Apache-2.0
// Dice: every choice of a scenario, from its seed, on any machine alike. And the kernel's generator while a scenario runs: uids
// and names' endings come from the seed too (dice.cc stands in for getentropy), so that a scenario is the same whenever it is
// run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace coracle::simulation {

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t roll();
  int64_t between(int64_t least, int64_t most);  // both may come
  bool chance(double probability);               // 0 never, 1 always
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[size_t(between(0, int64_t(from.size()) - 1))];
  }

 private:
  uint64_t state_;
};

// While it lives, what this thread asks of the kernel's generator comes from these dice.
class SeededEntropy {
 public:
  explicit SeededEntropy(uint64_t seed);
  ~SeededEntropy();

 private:
  Dice dice_;
};

}  // namespace coracle::simulation
