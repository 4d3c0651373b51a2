// SPDX-License-Identifier: Apache-2.0
// runtime::Trees by coracle-image: one process for each call (job.h).
#pragma once

#include <memory>
#include <string>

#include "runtime/runtime.h"

namespace coracle::image {

// `program`: coracle-image. `store`: a directory that is there, which its processes cover with their empty root.
std::unique_ptr<runtime::Trees> make_trees(std::string program, std::string store);

}  // namespace coracle::image
