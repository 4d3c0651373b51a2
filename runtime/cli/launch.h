// SPDX-License-Identifier: Apache-2.0
// create and run: create a container from a bundle.
//
//   config.json ─▶ oci::Spec ─▶ namespaces, cgroup, seccomp program, root ─▶ Prepared ─▶ clone ─▶ hooks ─▶ held ─▶ state.json
//
// An error on the way names its field, and nothing of the container is left. Source: runtime-spec runtime.md "Lifecycle".
#pragma once

#include "runtime/base/result.h"
#include "runtime/cli/options.h"

namespace coracle::cli {

Result<int> create(const Options& options);
// create and start; unless detached, also wait for the end and delete. Returns the exit code or 128 + signal.
Result<int> run(const Options& options);

}  // namespace coracle::cli
