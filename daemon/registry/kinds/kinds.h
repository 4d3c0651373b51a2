// SPDX-License-Identifier: Apache-2.0
// The strategies that there are, each in a file of its own beside this one.
#pragma once

#include "daemon/registry/strategy.h"

namespace coracle::registry {

const Strategy& pod_strategy();
const Strategy& service_strategy();
const Strategy& namespace_strategy();
const Strategy& workload_strategy(const Kind& kind);   // generations count
const Strategy& endpoints_strategy(const Kind& kind);  // generations of slices; PUT creates Endpoints
const Strategy& upsert_strategy(const Kind& kind);     // PUT creates: events, leases

}  // namespace coracle::registry
