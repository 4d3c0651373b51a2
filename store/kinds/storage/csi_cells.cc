// SPDX-License-Identifier: Apache-2.0
// Cells of classes and drivers: the default class, the audiences of a driver's tokens.
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/storage/storage_kinds.h"

namespace coracle::schema {
namespace {

bool is_marked(const json::value& object, std::string_view annotation) {
  const json::value* found = metadata_of(object).annotations().if_contains(annotation);
  return found && found->is_string() && found->get_string() == "true";
}

// The name, marked as default if one of the column's annotations is set.
json::value class_name(const CellInput& in) {
  std::string text(metadata_of(in.object).name());
  for (std::string_view annotation : in.arguments) {
    if (is_marked(in.object, annotation)) return json::value(text + " (default)");
  }
  return json::value(text);
}

json::value audiences(const CellInput& in) {
  view::CSIDriverSpec spec = view::CSIDriver(in.object).spec();
  if (!spec.has_token_requests()) return json::value("<unset>");
  std::vector<std::string> texts;
  for (view::StorageTokenRequest request : spec.token_requests()) texts.emplace_back(request.audience());
  return json::value(join(texts, ","));
}

constexpr NamedCellRule kCsiCells[] = {{"class.name", class_name}, {"driver.audiences", audiences}};

}  // namespace

std::span<const NamedCellRule> csi_cells() { return kCsiCells; }

}  // namespace coracle::schema
