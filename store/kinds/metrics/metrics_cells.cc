// SPDX-License-Identifier: Apache-2.0
// Cells of metrics: the amount of the node, or of the pod's containers together.
#include "store/kinds/metrics/metrics_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

void add(Quantity& sum, const json::object& usage, std::string_view resource) {
  if (auto used = amount_in(usage, resource)) sum += *used;
}

json::value used(const CellInput& in) {
  Quantity sum;
  add(sum, view::NodeMetrics(in.object).usage(), in.arguments[0]);
  for (view::ContainerMetrics container : view::PodMetrics(in.object).containers()) add(sum, container.usage(), in.arguments[0]);
  return json::value(sum.text());
}

constexpr NamedCellRule kMetricsCells[] = {{"metrics.used", used}};

}  // namespace

std::span<const NamedCellRule> metrics_cells() { return kMetricsCells; }

}  // namespace coracle::schema
