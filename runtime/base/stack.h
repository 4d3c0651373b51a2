// SPDX-License-Identifier: Apache-2.0
// The memory of a thread's stack. Apart from thread.h, which everybody includes.
#pragma once

namespace coracle {

// Gives back what deeper calls of this thread left in its stack: they keep it for as long as the thread lives, and nobody else
// can give it back. Microseconds. For a thread that is about to wait for long.
void give_stack_back();

}  // namespace coracle
