// SPDX-License-Identifier: Apache-2.0
// Hooks that run in the runtime's own namespaces: prestart, createRuntime, poststart, poststop. One after the other, each
// with the container's state on its input, in the bundle. What a hook writes is part of the error when it fails. Source:
// runtime-spec config.md "POSIX-platform Hooks".
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::cli {

// The first that fails is the answer, and the rest do not run. `field`: "createRuntime", for messages.
Result<void> run_hooks(const std::vector<oci::Hook>& hooks, const char* field, const json::object& state);
// All of them; failures are only told: what they are about has happened already.
void run_late_hooks(const std::vector<oci::Hook>& hooks, const char* field, const json::object& state);

}  // namespace coracle::cli
