// SPDX-License-Identifier: Apache-2.0
// See random.h.
#include "runtime/base/random.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace coracle {

void fill_random(std::span<uint8_t> bytes) {
  if (::getentropy(bytes.data(), bytes.size()) != 0) std::abort();
}

uint32_t random_below(uint32_t bound) {
  if (bound <= 1) return 0;
  uint32_t fair = UINT32_MAX - (UINT32_MAX % bound + 1) % bound;  // larger values would bias towards small numbers
  for (;;) {
    std::array<uint8_t, 4> bytes;
    fill_random(bytes);
    uint32_t number;
    std::memcpy(&number, bytes.data(), sizeof number);
    if (number <= fair) return number % bound;
  }
}

}  // namespace coracle
