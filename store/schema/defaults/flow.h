// SPDX-License-Identifier: Apache-2.0
// The flow schemas and priority levels that a server begins with: those that it cannot do without, whose specs are fixed, and
// those that are suggested, which an administrator may change. Pure; thread-safe.
// Source: Kubernetes 1.36, apiserver pkg/apis/flowcontrol/bootstrap.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/object/kind.h"

namespace coracle::schema {

// Of kFlowSchema or kPriorityLevelConfiguration; canonical and defaulted, without server's metadata. Mandatory ones first.
const std::vector<json::value>& initial_flow_objects(const Kind& kind);
// The one spec that a mandatory object may have; nullptr: the name is free.
const json::value* mandatory_flow_spec(const Kind& kind, std::string_view name);

}  // namespace coracle::schema
