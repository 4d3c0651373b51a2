// SPDX-License-Identifier: Apache-2.0
// Cells of component statuses.
#include "store/kinds/component_status/component_status_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

view::ComponentCondition health(const CellInput& in) {
  for (view::ComponentCondition condition : view::ComponentStatus(in.object).conditions()) {
    if (condition.type() == "Healthy") return condition;
  }
  return {};
}

json::value component_status(const CellInput& in) {
  view::ComponentCondition condition = health(in);
  if (!condition) return json::value("Unknown");
  return json::value(condition.status() == "True" ? "Healthy" : "Unhealthy");
}
json::value component_message(const CellInput& in) { return json::value(health(in).message()); }
json::value component_error(const CellInput& in) { return json::value(health(in).error()); }

constexpr NamedCellRule kComponentStatusCells[] = {
    {"component.status", component_status}, {"component.message", component_message}, {"component.error", component_error}};

}  // namespace

std::span<const NamedCellRule> component_status_cells() { return kComponentStatusCells; }

}  // namespace coracle::schema
