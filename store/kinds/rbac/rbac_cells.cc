// SPDX-License-Identifier: Apache-2.0
// Cells of role bindings.
#include "runtime/base/text.h"
#include "store/kinds/rbac/rbac_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

json::value role(const CellInput& in) {
  view::RoleRef ref = view::RoleBinding(in.object).role_ref();
  return json::value(std::string(ref.kind()) + "/" + std::string(ref.name()));
}

json::value subjects(const CellInput& in) {
  std::vector<std::string> names;
  for (view::Subject subject : view::RoleBinding(in.object).subjects()) {
    if (subject.kind() != in.arguments[0]) continue;
    std::string name(subject.name());
    names.push_back(subject.kind() == "ServiceAccount" ? std::string(subject.namespace_()) + "/" + name : name);
  }
  return json::value(join(names, ", "));
}

constexpr NamedCellRule kRbacCells[] = {{"binding.role", role}, {"binding.subjects", subjects}};

}  // namespace

std::span<const NamedCellRule> rbac_cells() { return kRbacCells; }

}  // namespace coracle::schema
