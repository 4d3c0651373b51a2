// SPDX-License-Identifier: Apache-2.0
// runtime::Trees with coracle-image: one process per call (job.h).
#pragma once

#include <memory>
#include <string>

#include "runtime/runtime.h"

namespace coracle::image {

// `program`: coracle-image. `store`: an existing directory; the processes mount their empty root over it.
std::unique_ptr<runtime::Trees> make_trees(std::string program, std::string store);

}  // namespace coracle::image
