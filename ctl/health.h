// SPDX-License-Identifier: Apache-2.0
// health: whether this machine's Kubernetes works, as an exit code with reasons: for watchdogs, for the check after an update of
// the system, for monitoring. The verdicts are pure; what they are about comes from the API.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct HealthState {
  std::optional<Error> not_ready;   // why /readyz was not answered with success
  std::optional<Error> unreadable;  // why the objects could not be read
  json::value nodes, pods;          // lists; null: not asked for, or not readable
};

// What is wrong, a line for each; empty: nothing.
//   the API       does not answer, or which of its checks fail
//   a node        is not Ready, or has too little disk, memory or process ids left
//   a pod         that should run does not, or is not ready. Pods that are done, or are being deleted, are not looked at
std::vector<std::string> health_problems(const HealthState& state);

}  // namespace coracle::ctl
