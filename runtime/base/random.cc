// SPDX-License-Identifier: Apache-2.0
// See random.h.
#include "runtime/base/random.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "runtime/base/guarded.h"

namespace coracle {
namespace {

struct Reserve {
  std::array<uint8_t, kRandomBytesMax> bytes;
  size_t used = kRandomBytesMax;
};

}  // namespace

void fill_random(std::span<uint8_t> bytes) {
  if (::getentropy(bytes.data(), bytes.size()) != 0) std::abort();
}

void draw_random(std::span<uint8_t> bytes) {
  static Guarded<Reserve> reserve;
  reserve.with([&](Reserve& r) {
    if (r.bytes.size() - r.used < bytes.size()) fill_random(r.bytes), r.used = 0;
    auto from = r.bytes.begin() + std::ptrdiff_t(r.used);
    std::copy_n(from, bytes.size(), bytes.begin());
    std::fill_n(from, bytes.size(), uint8_t{0});
    r.used += bytes.size();
  });
}

uint32_t random_below(uint32_t bound) {
  if (bound <= 1) return 0;
  uint32_t fair = UINT32_MAX - (UINT32_MAX % bound + 1) % bound;  // larger values would bias towards small numbers
  for (;;) {
    std::array<uint8_t, 4> bytes;
    draw_random(bytes);
    uint32_t number;
    std::memcpy(&number, bytes.data(), sizeof number);
    if (number <= fair) return number % bound;
  }
}

}  // namespace coracle
