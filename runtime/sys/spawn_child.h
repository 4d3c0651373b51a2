// SPDX-License-Identifier: Apache-2.0
// The child of spawn(), between clone3 and exec. It shares our memory while we sleep, on a stack of its own: it may
// call nothing that allocates, locks or returns, and leaves what went wrong in its SpawnChild.
#pragma once

#include <linux/sched.h>

#include <cstddef>

namespace coracle::sys {

struct SpawnChild {
  int program, null, fd3;
  int beside;  // what is given to it beside all that we have; -1: it gets nothing but null and fd3
  const char* const* argv;
  const char* const* environment;
  const char* step;  // set by the child when something fails, with
  int err;           // a positive errno
};

[[noreturn]] void run_spawned(SpawnChild* child) noexcept;

// clone3; the child begins in run_spawned on the stack that `arguments` names. Returns the pid or a negative errno.
long clone_onto_stack(clone_args* arguments, size_t size, SpawnChild* child) noexcept;

}  // namespace coracle::sys
