// SPDX-License-Identifier: Apache-2.0
// What a cluster says about its own parts from the start: the network of its services, and that its components are well.
// They are threads of this process: whoever can ask gets a healthy answer. Source: Kubernetes "Virtual IPs and Service
// Proxies", "IP address objects"; core/v1 API reference, ComponentStatus.
#pragma once

#include "daemon/registry/registry.h"

namespace coracle::registry {

// Idempotent; what is there stays. Errors: as Registry::create.
Result<void> make_parts(Registry& registry, const Ranges& ranges);

}  // namespace coracle::registry
