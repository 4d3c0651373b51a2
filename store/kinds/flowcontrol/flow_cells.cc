// SPDX-License-Identifier: Apache-2.0
// Cells of flow schemas and priority levels.
#include "store/kinds/flowcontrol/flowcontrol_kinds.h"
#include "store/kinds/meta/conditions.h"

namespace coracle::schema {
namespace {

json::value missing_level(const CellInput& in) {
  const json::value* dangling = find_condition(in.object, "Dangling");
  return json::value(dangling ? get_string(*dangling, "status") : "?");
}

// A number, or the column's text for an absent field.
json::value shares(const CellInput& in) {
  const json::value* limited = find(in.object, "spec.limited");
  if (!limited || !limited->is_object()) return json::value("<none>");
  return json::value(get_int(*limited, "nominalConcurrencyShares"));
}

constexpr NamedCellRule kFlowCells[] = {{"flow.missing_level", missing_level}, {"level.shares", shares}};

}  // namespace

std::span<const NamedCellRule> flow_cells() { return kFlowCells; }

}  // namespace coracle::schema
