// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Nodes.
#include "store/kinds/node/node_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kNodeKinds[] = {
    {.api_version = "v1",
     .resource = "nodes",
     .update = check_node_update,
     .status = check_node_status,
     .create = check_node_create},
};

}  // namespace

extern const KindFamily node_family;
const KindFamily node_family{
    .defaults = {node_defaults},
    .validation = {node_rules},
    .cells = {node_cells},
    .kinds = kNodeKinds,
};

}  // namespace coracle::schema
