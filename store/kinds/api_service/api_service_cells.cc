// SPDX-License-Identifier: Apache-2.0
// Cells of API services.
#include "store/kinds/api_service/api_service_kinds.h"
#include "store/kinds/meta/conditions.h"

namespace coracle::schema {
namespace {

json::value service(const CellInput& in) {
  view::ServiceReference service = view::APIService(in.object).spec().service();
  if (!service) return json::value("Local");
  return json::value(std::string(service.namespace_()) + "/" + std::string(service.name()));
}

json::value available(const CellInput& in) {
  view::Condition condition(find_condition(in.object, "Available"));
  if (!condition) return json::value("Unknown");
  std::string_view status = condition.status(), reason = condition.reason();
  if (status == "True" || reason.empty()) return json::value(status);
  return json::value(std::string(status) + " (" + std::string(reason) + ")");
}

constexpr NamedCellRule kApiServiceCells[] = {{"apiservice.service", service}, {"apiservice.available", available}};

}  // namespace

std::span<const NamedCellRule> api_service_cells() { return kApiServiceCells; }

}  // namespace coracle::schema
