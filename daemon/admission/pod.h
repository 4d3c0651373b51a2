// SPDX-License-Identifier: Apache-2.0
// Functions on pods shared by plugins. Pure. What a pod refers to is in store/kinds/pod/pod_references.h.
#pragma once

#include <string_view>

#include "runtime/base/json.h"
#include "store/kinds/pod/pod_references.h"
#include "store/kinds/pod/pod_state.h"
#include "store/schema/catalog.h"

namespace coracle::admission {

// The object itself if it is a pod, else its pod template; absent if it has none.
view::PodTemplateSpec pod_of(const schema::KindInfo& info, const json::value& object);

}  // namespace coracle::admission
