// SPDX-License-Identifier: Apache-2.0
// Hooks that run in the runtime's namespaces: prestart, createRuntime, poststart, poststop. They run one after the other in the
// bundle, each with the container's state as standard input. The output of a failed hook becomes part of the error. Source:
// runtime-spec config.md "POSIX-platform Hooks".
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::cli {

// Stops at the first hook that fails and returns its error. `field`: "createRuntime", for messages.
Result<void> run_hooks(const std::vector<oci::Hook>& hooks, const char* field, const json::object& state);
// Runs all of them. Failures are only logged, because the hooks follow an operation that is already done.
void run_late_hooks(const std::vector<oci::Hook>& hooks, const char* field, const json::object& state);

}  // namespace coracle::cli
