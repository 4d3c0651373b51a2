// SPDX-License-Identifier: Apache-2.0
// Ends pods by the metadata (ContainerMark, SandboxMark) that the runtime stores with them. Used when the pods' objects cannot be
// read because the store is damaged or the disk cannot be read.
#pragma once

#include <chrono>

#include "runtime/base/result.h"
#include "runtime/runtime.h"

namespace coracle::node {

// Sends every running container its stop signal and waits until the containers have ended. The wait per pod is its grace period,
// at most `longest`. Then removes the sandboxes, which kills what still runs. Blocks that long. Errors: the first error of the
// runtime; all pods are tried.
Result<void> end_by_marks(runtime::Runtime& runtime, std::chrono::seconds longest);

}  // namespace coracle::node
