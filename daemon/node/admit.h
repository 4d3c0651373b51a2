// SPDX-License-Identifier: Apache-2.0
// Whether this node takes a pod that was given to it: what a scheduler would have kept away, and what static pods and pods that
// name their node never asked a scheduler. Pure, but for what the hooks ask the kernel.
// Source: kubelet's admission handlers: lifecycle/predicate.go, sysctl, apparmor (reasons, texts).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/node/config.h"
#include "daemon/node/resources.h"
#include "store/object/object_ptr.h"

namespace coracle::node {

struct AdmitInputs {
  std::vector<ObjectPtr> others;  // the pods that hold resources here
  json::object allocatable;
  const Object* node = nullptr;  // as the API has it; null: not known yet
  bool is_static = false;
};

// Why the node refuses the pod, if it does. What runs already is not asked again.
std::optional<Refusal> refuse_pod(const Object& pod, const AdmitInputs& inputs, const AgentConfig& config);

// The AppArmor profile of a container: its own, that of an annotation, the pod's. Type "" when nobody names one.
struct AppArmorProfile {
  std::string type, name;  // "RuntimeDefault", "Localhost" with the profile's name, "Unconfined"
};
AppArmorProfile apparmor_profile_of(const json::value& pod, const json::value& container);

}  // namespace coracle::node
