// SPDX-License-Identifier: Apache-2.0
// Functions on pods shared by plugins: visiting containers and referenced names. Pure.
#pragma once

#include <functional>
#include <string_view>

#include "runtime/base/json.h"
#include "store/kinds/pod/pod_state.h"
#include "store/schema/catalog.h"

namespace coracle::admission {

json::array& array_at(json::value& root, std::string_view dotted);  // created if absent

// The object itself if it is a pod, else its pod template; absent if it has none.
view::PodTemplateSpec pod_of(const schema::KindInfo& info, const json::value& object);

// Visits the containers of a pod's spec. `list`: "initContainers", "containers", "ephemeralContainers", in this order; `index`:
// in that list. An ephemeral container has the fields of a container.
using VisitContainer = std::function<void(view::Container container, std::string_view list, size_t index)>;
void visit_containers(view::PodSpec spec, const VisitContainer& visit);

// Visits every name of a Secret or of a ConfigMap in the pod's spec.
using VisitName = std::function<void(std::string_view name)>;
void visit_secrets(view::PodSpec spec, const VisitName& visit);
void visit_config_maps(view::PodSpec spec, const VisitName& visit);

}  // namespace coracle::admission
