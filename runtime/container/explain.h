// SPDX-License-Identifier: Apache-2.0
// The error message for a failed step of a launch: the field of config.json, the system call, the kernel's error.
//   "exec: \"nginx\": executable file not found in $PATH"
//   "mounts: /data: fsmount, move_mount: no such device"
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/launch/flat_plan.h"
#include "runtime/oci/spec.h"
#include "runtime/pause/protocol.h"

namespace coracle::runtime {

// `spec` and `mounts` (destinations) are those of the plan. `said`: the output of the hook that failed.
Error explain_failure(const launch::Failure& failure, const oci::Spec& spec, const std::vector<std::string>& mounts,
                      const std::string& said = "");
Error explain_failure(const pause::Reply& reply, const oci::Spec& spec, const std::vector<std::string>& mounts);

}  // namespace coracle::runtime
