// SPDX-License-Identifier: Apache-2.0
// See dice.h. The numbers are those of SplitMix64 (Steele, Lea, Flood 2014).
#include "tests/simulation/dice.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "runtime/base/random.h"

namespace coracle::simulation {
namespace {
thread_local Dice* entropy = nullptr;
}

uint64_t Dice::roll() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int64_t Dice::between(int64_t least, int64_t most) { return least + int64_t(roll() % uint64_t(most - least + 1)); }

bool Dice::chance(double probability) { return double(roll() >> 11) * 0x1.0p-53 < probability; }

SeededEntropy::SeededEntropy(uint64_t seed) : dice_(seed) {
  entropy = &dice_;
  forget_fetched_random();
}

SeededEntropy::~SeededEntropy() {
  entropy = nullptr;
  forget_fetched_random();
}

}  // namespace coracle::simulation

// Replaces the C library's function: a symbol of the program takes precedence.
extern "C" int getentropy(void* buffer, size_t length) noexcept {
  using coracle::simulation::entropy;
  if (!entropy) return ::syscall(SYS_getrandom, buffer, length, 0) == long(length) ? 0 : -1;
  for (auto* at = static_cast<unsigned char*>(buffer); length > 0;) {
    uint64_t number = entropy->roll();
    size_t part = length < sizeof number ? length : sizeof number;
    std::memcpy(at, &number, part);
    at += part, length -= part;
  }
  return 0;
}
