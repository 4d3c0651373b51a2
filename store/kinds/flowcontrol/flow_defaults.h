// SPDX-License-Identifier: Apache-2.0
// The initial flow schemas and priority levels of a server: the mandatory ones, whose specs are fixed, and the suggested ones,
// which an administrator may change. Pure; thread-safe.
// Source: Kubernetes 1.36, apiserver pkg/apis/flowcontrol/bootstrap.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/object/kind.h"

namespace coracle::schema {

// For kFlowSchema or kPriorityLevelConfiguration; canonical and defaulted, without the server's metadata. Mandatory ones first.
const std::vector<json::value>& initial_flow_objects(const Kind& kind);
// The required spec of a mandatory object; nullptr for other names.
const json::value* mandatory_flow_spec(const Kind& kind, std::string_view name);

}  // namespace coracle::schema
