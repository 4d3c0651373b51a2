// SPDX-License-Identifier: Apache-2.0
// Marks free memory of our own allocators for AddressSanitizer, so that it reports a use after free. Does nothing in other
// builds.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace coracle::sys {

inline void poison([[maybe_unused]] void* block, [[maybe_unused]] size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(block, size);
#endif
}

inline void unpoison([[maybe_unused]] void* block, [[maybe_unused]] size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(block, size);
#endif
}

}  // namespace coracle::sys
