// SPDX-License-Identifier: Apache-2.0
// Nodes: the one that registers itself may say at once how it is. Source: core/v1 API reference, Node.
#include "daemon/registry/kinds/kinds.h"

namespace coracle::registry {

const Strategy& node_strategy() {
  static const Strategy strategy = [] {
    Strategy s;
    s.kind = &kNode;
    s.keeps_first_status = true;
    return s;
  }();
  return strategy;
}

}  // namespace coracle::registry
