// SPDX-License-Identifier: Apache-2.0
// Scale: the view of a workload that knows replicas only. Pure. Source: Kubernetes autoscaling/v1 Scale.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/object/object_ptr.h"

namespace coracle::registry {

json::value scale_of(const Object& workload);
// `workload` with the replicas that `scale` asks for. Errors: invalid (not a number, negative), conflict when the scale
// names another resourceVersion, bad_request.
Result<json::value> apply_scale(const Object& workload, const json::value& scale);

}  // namespace coracle::registry
