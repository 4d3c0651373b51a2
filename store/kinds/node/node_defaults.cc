// SPDX-License-Identifier: Apache-2.0
// Defaults of Nodes: allocatable is the capacity. Source: core/v1 API reference, NodeStatus.
#include "store/kinds/node/node_kinds.h"

namespace coracle::schema {
namespace {

void default_status(json::object& status) {
  if (!unset(status, "allocatable", true) || unset(status, "capacity", true)) return;
  json::value capacity = status["capacity"];
  status["allocatable"] = std::move(capacity);
}

constexpr NamedDefaultRule kNodeDefaults[] = {{"io.k8s.api.core.v1.NodeStatus", default_status}};

}  // namespace

std::span<const NamedDefaultRule> node_defaults() { return kNodeDefaults; }

}  // namespace coracle::schema
