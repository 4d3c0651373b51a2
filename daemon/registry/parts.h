// SPDX-License-Identifier: Apache-2.0
// Objects that describe the cluster itself: the service network, and the component statuses. The components are threads of this
// process, so if the API answers they are healthy. Source: Kubernetes "Virtual IPs and Service Proxies", "IP address objects";
// core/v1 API reference, ComponentStatus.
#pragma once

#include "daemon/registry/registry.h"

namespace coracle::registry {

// Idempotent; existing objects are not changed. Errors: as Registry::create.
Result<void> make_parts(Registry& registry, const kinds::Ranges& ranges);

}  // namespace coracle::registry
