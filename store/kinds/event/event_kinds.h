// SPDX-License-Identifier: Apache-2.0
// Rules: Events of both groups.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> event_rules();
std::span<const NamedCellRule> event_cells();

void check_newer_event_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_newer_event(const json::value& object, Findings& out);
void event_to_core(json::object& object);    // from events.k8s.io/v1
void event_from_core(json::object& object);  // to events.k8s.io/v1

}  // namespace coracle::schema
