// SPDX-License-Identifier: Apache-2.0
// Ends pods by what their marks say of them, where nobody can read what they are: the store is damaged, or the disk cannot be
// read.
#pragma once

#include <chrono>

#include "runtime/base/result.h"
#include "runtime/runtime.h"

namespace coracle::node {

// Sends every container its stop signal, waits for those of a pod no longer than its grace period and for all no longer than
// `longest`, kills what is left, and removes the sandboxes. Blocks for as long. Errors: the first of the runtime's; all pods have
// been tried.
Result<void> end_by_marks(runtime::Runtime& runtime, std::chrono::seconds longest);

}  // namespace coracle::node
