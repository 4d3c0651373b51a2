// SPDX-License-Identifier: Apache-2.0
// Which pods belong together when nobody says so: those that the same services and the same controller select. For spreading by
// default. Source: Kubernetes "Pod Topology Spread Constraints", cluster-level default constraints.
#pragma once

#include <optional>

#include "daemon/scheduler/framework.h"

namespace coracle::scheduler {

// Nothing when no service and no controller selects the pod.
std::optional<LabelSelector> default_selector(const Object& pod, const Lister& lister);

}  // namespace coracle::scheduler
