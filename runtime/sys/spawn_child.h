// SPDX-License-Identifier: Apache-2.0
// The child of spawn(), between clone3 and exec. It shares our memory while the parent thread sleeps, and has a stack of its own:
// it may call nothing that allocates, locks or returns. It reports errors in its SpawnChild.
#pragma once

#include <linux/sched.h>

#include <cstddef>

namespace coracle::sys {

struct SpawnChild {
  int program, null, fd3;
  int beside;  // descriptor that is inherited beside all of ours; -1: only null and fd3 are inherited
  const char* const* argv;
  const char* const* environment;
  const char* step;  // set by the child on failure, with
  int err;           // a positive errno
};

[[noreturn]] void run_spawned(SpawnChild* child) noexcept;

// clone3; the child starts in run_spawned on the stack given in `arguments`. Returns the pid or a negative errno.
long clone_onto_stack(clone_args* arguments, size_t size, SpawnChild* child) noexcept;

}  // namespace coracle::sys
