// SPDX-License-Identifier: Apache-2.0
// Usage: what one object uses of a ResourceQuota, and which quotas count it. Pure; shared by admission, which charges, and
// the controller, which counts anew. Source: Kubernetes quota/v1 evaluators (pods, services, persistentvolumeclaims, object
// counts).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/quota/amounts.h"
#include "runtime/base/clock.h"
#include "store/object/kind.h"
#include "store/schema/catalog.h"

namespace coracle::quota {

// Whether quotas count objects of this kind at all. `info`: as it is stored.
bool counted(const schema::KindInfo& info);
// Of `names` (a quota's limits), those that this kind uses.
std::vector<std::string> tracked(const Kind& kind, const std::vector<std::string>& names);
// What the object uses. A pod that has ended, or should have been gone by `now`, uses a place in the store only.
Amounts usage_of(const Kind& kind, const json::value& object, WallTime now);
// Whether the object lies within all scopes of the quota's spec.
bool in_scopes(const Kind& kind, const json::value& quota, const json::value& object);
// A quota counts the object: it limits something that its kind uses, and its scopes hold it. By status.hard.
bool matches(const Kind& kind, const json::value& quota, const json::value& object);

std::vector<std::string> names_of(const json::object& list);
// The class that a claim names, in its spec or in the annotation that came before it; "": none.
std::string storage_class_of(const json::value& claim);

}  // namespace coracle::quota
