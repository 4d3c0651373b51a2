// SPDX-License-Identifier: Apache-2.0
// Unpredictable bytes for identifiers, nonces and name suffixes. They come from the kernel's generator by getentropy(3), not from
// the RDRAND instruction: that takes a hundred times as long. Does not block once the machine has booted. Source: getentropy(3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace coracle {

constexpr size_t kRandomBytesMax = 256;      // per call
void fill_random(std::span<uint8_t> bytes);  // at most kRandomBytesMax; ends the process if the kernel has no generator

// As fill_random, from bytes that this thread has fetched before: few calls make a system call. For identifiers, not for secrets
// that must not lie in memory before they are used.
void draw_random(std::span<uint8_t> bytes);
// The next draw of this thread fetches new bytes. For a child of fork(2), which would repeat its parent's, and for tests that
// replace getentropy.
void forget_fetched_random();

// A uniformly distributed number below `bound`. Draws its bytes.
uint32_t random_below(uint32_t bound);

}  // namespace coracle
