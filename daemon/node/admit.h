// SPDX-License-Identifier: Apache-2.0
// Admission of a pod on this node. It repeats the scheduler's checks, because static pods and pods that set spec.nodeName bypass
// the scheduler. Pure, except that the hooks query the kernel. Source: kubelet's admission handlers: lifecycle/predicate.go,
// sysctl, apparmor (reasons, texts).
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
  std::vector<ObjectPtr> others;  // the admitted pods that hold resources here
  json::object allocatable;
  const Object* node = nullptr;  // as the API has it; null: not known yet
  bool is_static = false;
};

// Why the node refuses the pod; nullopt if it admits the pod. Pods that already run are not checked again.
std::optional<Refusal> refuse_pod(const Object& pod, const AdmitInputs& inputs, const AgentConfig& config);

// The AppArmor profile of a container: from its own field, else from its annotation, else from the pod's field. Type "" if none
// is set.
struct AppArmorProfile {
  std::string type, name;  // "RuntimeDefault", "Localhost" with the profile's name, "Unconfined"
};
AppArmorProfile apparmor_profile_of(const json::value& pod, const json::value& container);

}  // namespace coracle::node
