// SPDX-License-Identifier: Apache-2.0
// What must not be guessed: identifiers, nonces, names' endings. From the kernel's generator, by the call and not by the
// processor's instruction, which takes a hundred times as long. Does not block once the machine has booted. Source:
// getentropy(3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace coracle {

constexpr size_t kRandomBytesMax = 256;      // at once
void fill_random(std::span<uint8_t> bytes);  // at most kRandomBytesMax; the process ends when the kernel has no generator

// A number below `bound`, each as likely as another.
uint32_t random_below(uint32_t bound);

}  // namespace coracle
