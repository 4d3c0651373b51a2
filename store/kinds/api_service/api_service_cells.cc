// SPDX-License-Identifier: Apache-2.0
// Cells of API services.
#include "store/kinds/api_service/api_service_kinds.h"
#include "store/kinds/meta/conditions.h"

namespace coracle::schema {
namespace {

json::value service(const CellInput& in) {
  const json::value* service = find(in.object, "spec.service");
  if (!service || !service->is_object()) return json::value("Local");
  return json::value(std::string(get_string(*service, "namespace")) + "/" + std::string(get_string(*service, "name")));
}

json::value available(const CellInput& in) {
  const json::value* condition = find_condition(in.object, "Available");
  if (!condition) return json::value("Unknown");
  std::string_view status = get_string(*condition, "status"), reason = get_string(*condition, "reason");
  if (status == "True" || reason.empty()) return json::value(status);
  return json::value(std::string(status) + " (" + std::string(reason) + ")");
}

constexpr NamedCellRule kApiServiceCells[] = {{"apiservice.service", service}, {"apiservice.available", available}};

}  // namespace

std::span<const NamedCellRule> api_service_cells() { return kApiServiceCells; }

}  // namespace coracle::schema
