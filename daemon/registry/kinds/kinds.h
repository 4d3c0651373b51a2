// SPDX-License-Identifier: Apache-2.0
// The strategies that there are, each in a file of its own beside this one.
#pragma once

#include <span>

#include "daemon/registry/strategy.h"

namespace coracle::registry {

inline constexpr Kind kDaemonSet{"apps", "v1", "DaemonSet", "daemonsets"};
inline constexpr Kind kJob{"batch", "v1", "Job", "jobs"};
inline constexpr Kind kPersistentVolume{"", "v1", "PersistentVolume", "persistentvolumes", false};
inline constexpr Kind kPersistentVolumeClaim{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"};
inline constexpr Kind kPriorityClass{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false};

const Strategy& pod_strategy();
const Strategy& service_strategy();
const Strategy& namespace_strategy();
const Strategy& certificate_request_strategy();
const Strategy& node_strategy();
const Strategy& job_strategy();
const Strategy& daemon_set_strategy();
const Strategy& volume_strategy();
const Strategy& claim_strategy();
const Strategy& priority_class_strategy();
std::span<const Strategy> simple_strategies();  // kinds whose generations count, and nothing more

}  // namespace coracle::registry
