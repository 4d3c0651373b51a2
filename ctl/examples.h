// SPDX-License-Identifier: Apache-2.0
// An example for the help of each command. tests/e2e/examples.sh runs each as it stands, on a machine called edge that has a
// Deployment "web", a pod "shell" and the files that the examples name.
#pragma once

#include <string_view>

namespace coracle::ctl {

// Lines of a shell. `path` is that of the command, "rollout status"; "" for one without an example.
std::string_view example_of(std::string_view path);

}  // namespace coracle::ctl
