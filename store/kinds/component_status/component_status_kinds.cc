// SPDX-License-Identifier: Apache-2.0
// Registers this folder. ComponentStatuses.
#include "store/kinds/component_status/component_status_kinds.h"

namespace coracle::schema {

extern const KindFamily component_status_family;
const KindFamily component_status_family{
    .cells = {component_status_cells},
};

}  // namespace coracle::schema
