// SPDX-License-Identifier: Apache-2.0
// Rules: what all kinds share: metadata and label selectors.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> meta_rules();

}  // namespace coracle::schema
