// SPDX-License-Identifier: Apache-2.0
// What coracle-image gives up before it reads the first foreign byte.
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace coracle::image {

// In a mount namespace of its own, with one thread. Afterwards: nothing of the machine's files can be changed but what
// lies in `store`, no device can be opened and nothing there executed; of the capabilities those are left that making
// files of any kind and owner takes; the system calls are those of a container; memory that is short is taken from this
// process first. Any error is fatal.
Result<void> confine(const std::string& store);

}  // namespace coracle::image
