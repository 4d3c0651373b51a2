// SPDX-License-Identifier: Apache-2.0
// The default selector of pods to spread: the pods that the same services and the same controller select. Source: Kubernetes "Pod
// Topology Spread Constraints", cluster-level default constraints.
#pragma once

#include <optional>

#include "daemon/scheduler/framework.h"

namespace coracle::scheduler {

// nullopt if no service and no controller selects the pod.
std::optional<LabelSelector> default_selector(const Object& pod, const Lister& lister);

}  // namespace coracle::scheduler
