// SPDX-License-Identifier: Apache-2.0
// Which writes say only "still alive": they come again within seconds or minutes, and a disk that wrote each of them would wear
// out for nothing. Pure. Source: Kubernetes "Node heartbeats".
#pragma once

#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::registry {

// Whether nothing differs but the kind's heartbeat (schema::KindFacts): a Lease's renewTime, the lastHeartbeatTime of a Node's
// conditions; and what the server keeps about the write itself.
bool is_heartbeat(const schema::KindInfo& stored, const json::value& before, const json::value& after);

}  // namespace coracle::registry
