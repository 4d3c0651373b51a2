// SPDX-License-Identifier: Apache-2.0
// The initial objects: the standard namespaces, and the Service `kubernetes`, by which pods reach the API. Runs at every start
// and repairs objects that are missing or outdated (as after a change of the node's address).
#pragma once

#include <string>
#include <string_view>

#include "daemon/registry/registry.h"

namespace coracle::registry {

struct Bootstrap {
  std::string api_address;  // address of the API for pods: the node's address
  uint16_t api_port = 6443;
  bool storage_classes = false;  // the default class "directory", and "local-path", which k3s has: see daemon/volume/local
};

// Errors: those of the write pipeline.
Result<void> bootstrap(Registry& registry, const kinds::Ranges& ranges, const Bootstrap& given);

// Creates missing flow schemas and priority levels, and updates those that the server manages. Mandatory ones have a fixed spec;
// suggested ones follow this version's spec while their annotation allows it. Errors: those of the write pipeline.
Result<void> ensure_flow_control(Registry& registry);

// The address of the Service `kubernetes`: the first one of the service range. Errors: invalid
Result<std::string> api_service_address(const kinds::Ranges& ranges);

}  // namespace coracle::registry
