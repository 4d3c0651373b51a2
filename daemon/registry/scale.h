// SPDX-License-Identifier: Apache-2.0
// Scale: the scale subresource of a workload. Pure. Source: Kubernetes autoscaling/v1 Scale.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/object/object_ptr.h"

namespace coracle::registry {

json::value scale_of(const Object& workload);  // the body of /scale
// `workload` with the replicas of the decoded `scale`. Errors: invalid if they are negative, conflict if the scale has another
// uid or resourceVersion.
Result<json::value> apply_scale(const Object& workload, const json::value& scale);

}  // namespace coracle::registry
