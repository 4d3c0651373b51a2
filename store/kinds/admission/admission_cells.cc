// SPDX-License-Identifier: Apache-2.0
// Cells of admission policies.
#include "store/kinds/admission/admission_kinds.h"
#include "store/object/selector.h"

namespace coracle::schema {
namespace {

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

constexpr NamedCellRule kAdmissionCells[] = {{"policy.param_kind", param_kind}, {"policy.param_ref", param_ref}};

}  // namespace

std::span<const NamedCellRule> admission_cells() { return kAdmissionCells; }

}  // namespace coracle::schema
