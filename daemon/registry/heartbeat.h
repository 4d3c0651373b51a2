// SPDX-License-Identifier: Apache-2.0
// Recognizes writes that are only heartbeats: they repeat within seconds or minutes, and writing each one to the disk would wear
// it out. Pure. Source: Kubernetes "Node heartbeats".
#pragma once

#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::registry {

// Whether only the kind's heartbeat fields differ (schema::KindTraits): a Lease's renewTime, the lastHeartbeatTime of a Node's
// conditions; and the metadata of each write: the revision, and the times in managedFields. Who owns a field is no heartbeat.
bool is_heartbeat(const schema::KindInfo& stored, const json::value& before, const json::value& after);

}  // namespace coracle::registry
