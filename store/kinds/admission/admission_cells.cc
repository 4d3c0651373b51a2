// SPDX-License-Identifier: Apache-2.0
// Cells of admission policies.
#include "store/kinds/admission/admission_kinds.h"
#include "store/object/selector.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

json::value param_kind(const CellInput& in) {
  // Policies of mutations have it at the same place.
  view::ParamKind kind = view::ValidatingAdmissionPolicy(in.object).spec().param_kind();
  if (!kind) return json::value("<unset>");
  return json::value(std::string(kind.api_version()) + "/" + std::string(kind.kind()));
}

json::value param_ref(const CellInput& in) {
  view::ParamRef reference = view::ValidatingAdmissionPolicyBinding(in.object).spec().param_ref();
  if (!reference) return json::value("<unset>");
  std::string_view name = reference.name(), space = reference.namespace_();
  if (!name.empty()) return json::value((space.empty() ? "*" : std::string(space)) + "/" + std::string(name));
  const json::value* labels = reference.selector().pointer();
  auto selector = labels ? LabelSelector::from_json(labels) : LabelSelector();
  return json::value(labels && selector ? selector->text() : "<unset>");
}

constexpr NamedCellRule kAdmissionCells[] = {{"policy.param_kind", param_kind}, {"policy.param_ref", param_ref}};

}  // namespace

std::span<const NamedCellRule> admission_cells() { return kAdmissionCells; }

}  // namespace coracle::schema
