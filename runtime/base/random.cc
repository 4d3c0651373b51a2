// SPDX-License-Identifier: Apache-2.0
// See random.h.
#include "runtime/base/random.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace coracle {
namespace {

struct Reserve {
  std::array<uint8_t, kRandomBytesMax> bytes;
  size_t used = kRandomBytesMax;
};
thread_local Reserve reserve;

}  // namespace

void fill_random(std::span<uint8_t> bytes) {
  if (::getentropy(bytes.data(), bytes.size()) != 0) std::abort();
}

void draw_random(std::span<uint8_t> bytes) {
  if (bytes.size() > kRandomBytesMax) std::abort();  // the reserve has no more
  if (reserve.bytes.size() - reserve.used < bytes.size()) fill_random(reserve.bytes), reserve.used = 0;
  auto from = reserve.bytes.begin() + std::ptrdiff_t(reserve.used);
  std::copy_n(from, bytes.size(), bytes.begin());
  std::fill_n(from, bytes.size(), uint8_t{0});
  reserve.used += bytes.size();
}

void forget_fetched_random() { reserve.used = reserve.bytes.size(); }

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
