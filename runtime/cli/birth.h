// SPDX-License-Identifier: Apache-2.0
// create and run: a bundle becomes a container.
//
//   config.json ─▶ oci::Spec ─▶ namespaces, cgroup, seccomp program, root ─▶ Prepared ─▶ clone ─▶ hooks ─▶ held ─▶ state.json
//
// Whatever fails on the way is said with its field, and nothing of the container stays.
// Source: runtime-spec runtime.md "Lifecycle".
#pragma once

#include "runtime/base/result.h"
#include "runtime/cli/options.h"

namespace coracle::cli {

Result<int> create(const Options& options);
// create, start, and unless detached: wait for its end, delete. Its exit code, 128 + signal.
Result<int> run(const Options& options);

}  // namespace coracle::cli
