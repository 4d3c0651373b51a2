// SPDX-License-Identifier: Apache-2.0
// Cells of flow schemas, priority levels, admission policies and API services, and of resource claims.
#include "store/object/selector.h"
#include "store/schema/table/cells.h"

namespace coracle::schema {
namespace {

const json::value* condition_of(const json::value& object, std::string_view type) {
  for (const json::value& condition : get_array(object, "status.conditions")) {
    if (get_string(condition, "type") == type) return &condition;
  }
  return nullptr;
}

json::value missing_level(const CellInput& in) {
  const json::value* dangling = condition_of(in.object, "Dangling");
  return json::value(dangling ? get_string(*dangling, "status") : "?");
}

// A number, or the column's text for an absent field.
json::value shares(const CellInput& in) {
  const json::value* limited = find(in.object, "spec.limited");
  if (!limited || !limited->is_object()) return json::value("<none>");
  return json::value(get_int(*limited, "nominalConcurrencyShares"));
}

json::value param_kind(const CellInput& in) {
  const json::value* kind = find(in.object, "spec.paramKind");
  if (!kind || !kind->is_object()) return json::value("<unset>");
  return json::value(std::string(get_string(*kind, "apiVersion")) + "/" + std::string(get_string(*kind, "kind")));
}

json::value param_ref(const CellInput& in) {
  const json::value* reference = find(in.object, "spec.paramRef");
  if (!reference || !reference->is_object()) return json::value("<unset>");
  std::string_view name = get_string(*reference, "name"), space = get_string(*reference, "namespace");
  if (!name.empty()) return json::value((space.empty() ? "*" : std::string(space)) + "/" + std::string(name));
  const json::value* labels = find(*reference, "selector");
  auto selector = labels ? LabelSelector::from_json(labels) : LabelSelector();
  return json::value(labels && selector ? selector->text() : "<unset>");
}

json::value service(const CellInput& in) {
  const json::value* service = find(in.object, "spec.service");
  if (!service || !service->is_object()) return json::value("Local");
  return json::value(std::string(get_string(*service, "namespace")) + "/" + std::string(get_string(*service, "name")));
}

json::value available(const CellInput& in) {
  const json::value* condition = condition_of(in.object, "Available");
  if (!condition) return json::value("Unknown");
  std::string_view status = get_string(*condition, "status"), reason = get_string(*condition, "reason");
  if (status == "True" || reason.empty()) return json::value(status);
  return json::value(std::string(status) + " (" + std::string(reason) + ")");
}

json::value claim_state(const CellInput& in) {
  std::string text;
  auto add = [&](std::string_view state) { text += (text.empty() ? "" : ",") + std::string(state); };
  bool deleted = !get_string(in.object, "metadata.deletionTimestamp").empty();
  if (deleted) add("deleted");
  const json::value* allocation = find(in.object, "status.allocation");
  if (allocation && allocation->is_object()) {
    add("allocated");
    if (!get_array(in.object, "status.reservedFor").empty()) add("reserved");
  } else if (!deleted) {
    add("pending");
  }
  return json::value(text);
}

constexpr NamedCellRule kExtensionCells[] = {{"flow.missing_level", missing_level}, {"level.shares", shares},
                                             {"policy.param_kind", param_kind},     {"policy.param_ref", param_ref},
                                             {"apiservice.service", service},       {"apiservice.available", available},
                                             {"claim.state", claim_state}};

}  // namespace

std::span<const NamedCellRule> extension_cells() { return kExtensionCells; }

}  // namespace coracle::schema
