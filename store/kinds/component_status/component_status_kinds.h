// SPDX-License-Identifier: Apache-2.0
// Rules: ComponentStatuses.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedCellRule> component_status_cells();

}  // namespace coracle::schema
