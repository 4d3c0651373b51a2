// SPDX-License-Identifier: Apache-2.0
// Cells of flow schemas and priority levels.
#include "store/kinds/flowcontrol/flowcontrol_kinds.h"
#include "store/kinds/meta/conditions.h"

namespace coracle::schema {
namespace {

json::value missing_level(const CellInput& in) {
  view::Condition dangling(find_condition(in.object, "Dangling"));
  return json::value(dangling ? dangling.status() : "?");
}

// A number, or the column's text for an absent field.
json::value shares(const CellInput& in) {
  view::LimitedPriorityLevelConfiguration limited = view::PriorityLevelConfiguration(in.object).spec().limited();
  if (!limited) return json::value("<none>");
  return json::value(limited.nominal_concurrency_shares());
}

constexpr NamedCellRule kFlowCells[] = {{"flow.missing_level", missing_level}, {"level.shares", shares}};

}  // namespace

std::span<const NamedCellRule> flow_cells() { return kFlowCells; }

}  // namespace coracle::schema
