// SPDX-License-Identifier: Apache-2.0
// Reads the end of a file that a container wrote, for the messages in a pod's status. The file may have any size.
#pragma once

#include <string>

namespace coracle::node {

// The last bytes of a file, at most `max`. "" if there is no file.
std::string end_of_file(const std::string& path, size_t max);

}  // namespace coracle::node
