// SPDX-License-Identifier: Apache-2.0
// Memory that this process holds and does not use, for a machine that has little of it.
#pragma once

namespace coracle::sys {

// For a process of few threads that stays for months: few places to take memory from, large pieces by themselves, and what is
// free at the end of one goes back. Before the first thread. What threads keep for themselves only the environment can turn off:
// see systemd/coracled.service.
void prefer_small_memory();

// Gives back what the allocator and the SlabPool hold free between what is used; and lets go of the pages of code and constants,
// our own and the libraries': those of a start or of a rare request are not needed soon. They stay in the kernel's page cache for
// as long as it has room, so what is needed again is mapped again in microseconds. Takes some milliseconds. Thread-safe.
void give_memory_back();

}  // namespace coracle::sys
