// SPDX-License-Identifier: Apache-2.0
// What is there from the first moment: the namespaces that everybody expects, and the `kubernetes` Service that leads pods
// to the API. Run at every start: what is missing or has changed (the node's address) is put right.
#pragma once

#include <string>
#include <string_view>

#include "daemon/registry/registry.h"

namespace coracle::registry {

struct Bootstrap {
  std::string api_address;  // where pods reach the API: the node's address
  uint16_t api_port = 6443;
  bool storage_classes = false;  // "directory", everybody's default, and "local-path", which k3s has: see daemon/volume/local
};

// Errors: what the pipeline says.
Result<void> bootstrap(Registry& registry, const Ranges& ranges, const Bootstrap& facts);

// The flow schemas and priority levels that a server begins with: what is missing is made, what is ours to change is put right.
// Mandatory ones have their one spec; suggested ones follow this version's as long as their annotation says so. Errors: what
// the pipeline says.
Result<void> ensure_flow_control(Registry& registry);

// The first address of the service range: the `kubernetes` Service. Errors: invalid
Result<std::string> api_service_address(const Ranges& ranges);

}  // namespace coracle::registry
