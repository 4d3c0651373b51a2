// SPDX-License-Identifier: Apache-2.0
// Rules: Namespaces.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> namespace_defaults();

void begin_namespace(json::value& object);

}  // namespace coracle::schema
