// SPDX-License-Identifier: Apache-2.0
// What containers wrote for a status: a file of any length, of which Kubernetes' messages are the end.
#pragma once

#include <string>

namespace coracle::node {

// The last bytes of a file, at most `max`. "" when there is none.
std::string end_of_file(const std::string& path, size_t max);

}  // namespace coracle::node
