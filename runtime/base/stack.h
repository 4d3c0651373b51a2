// SPDX-License-Identifier: Apache-2.0
// Freeing the unused part of a thread's stack.
#pragma once

namespace coracle {

// Frees the pages of this thread's stack below the current call. They would stay in memory as long as the thread lives. Takes
// microseconds. Call it before a long wait.
void give_stack_back();

}  // namespace coracle
