// SPDX-License-Identifier: Apache-2.0
// Rules: Leases.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> lease_rules();

}  // namespace coracle::schema
