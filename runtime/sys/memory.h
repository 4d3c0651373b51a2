// SPDX-License-Identifier: Apache-2.0
// Reducing the memory of this process, for a machine that has little.
#pragma once

namespace coracle::sys {

// Configures malloc for a long-running process with few threads: two arenas, large blocks mapped separately, free memory at the
// end of the heap returned to the kernel; smaller stacks on processors of 32 bits. Call before the first thread. The per-thread
// caches can only be disabled by the environment: see systemd/coracled.service.
void prefer_small_memory();

// Returns the free memory of the allocator and of SlabPool to the kernel. It also drops the mappings of code and constants (of
// the program and its libraries), because code for startup or rare requests is not needed soon. These pages stay in the page
// cache while the kernel has memory for them, so a page that is needed again is mapped within microseconds. Takes some
// milliseconds. Thread-safe.
void give_memory_back();

}  // namespace coracle::sys
