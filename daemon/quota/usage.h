// SPDX-License-Identifier: Apache-2.0
// Usage: what one object uses of a ResourceQuota, and which quotas apply to it. Pure. Shared by admission, which charges the
// usage, and the controller, which recomputes it. Source: Kubernetes quota/v1 evaluators (pods, services, persistentvolumeclaims,
// object counts).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "store/object/kind.h"
#include "store/schema/amounts.h"
#include "store/schema/catalog.h"

namespace coracle::quota {

// Whether quotas can apply to this kind. `info`: the stored kind.
bool counted(const schema::KindInfo& info);
// The resources of a quota that this kind uses, sorted. `limits`: its spec.hard or status.hard, which may have thousands.
std::vector<std::string> tracked(const Kind& kind, const json::object& limits);
// The usage of the object. A pod that has ended, or whose grace period is over at `now`, counts only as a stored object.
Amounts usage_of(const Kind& kind, const json::value& object, WallTime now);
// Whether the object matches all scopes of the quota's spec.
bool in_scopes(const Kind& kind, const json::value& quota, const json::value& object);
// Whether the quota applies to the object: it limits a resource that the kind uses (by status.hard), and its scopes match.
bool matches(const Kind& kind, const json::value& quota, const json::value& object);

// The storage class of a claim, from its spec or from the older annotation; "": none.
std::string storage_class_of(const json::value& claim);

}  // namespace coracle::quota
