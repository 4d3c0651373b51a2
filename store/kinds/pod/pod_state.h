// SPDX-License-Identifier: Apache-2.0
// What the status of a pod says: whether it has ended, whether it is ready. Source: Kubernetes, "Pod Lifecycle".
#pragma once

#include <optional>
#include <string_view>

#include "store/schema/views.h"

namespace coracle {

inline bool is_terminal_phase(std::string_view phase) { return phase == "Succeeded" || phase == "Failed"; }
// All containers have ended and are not started again.
inline bool is_terminal(view::Pod pod) { return is_terminal_phase(pod.status().phase()); }

inline std::optional<view::PodCondition> pod_condition(view::Pod pod, std::string_view type) {
  for (view::PodCondition condition : pod.status().conditions())
    if (condition.type() == type) return condition;
  return std::nullopt;
}

inline bool is_ready(view::Pod pod) {
  auto ready = pod_condition(pod, "Ready");
  return ready && ready->status() == "True";
}

// The API's image of a static pod, which the node agent runs from a file.
inline constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
inline bool is_mirror(view::Pod pod) { return pod.metadata().annotations().contains(kMirrorAnnotation); }

}  // namespace coracle
