// SPDX-License-Identifier: Apache-2.0
// Rules: NodeMetrics and PodMetrics.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedCellRule> metrics_cells();

}  // namespace coracle::schema
