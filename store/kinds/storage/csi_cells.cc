// SPDX-License-Identifier: Apache-2.0
// Cells of classes and drivers: the default class, the audiences of a driver's tokens.
#include "runtime/base/text.h"
#include "store/kinds/storage/storage_kinds.h"

namespace coracle::schema {
namespace {

bool is_marked(const json::value& object, std::string_view annotation) {
  const json::value* found = find_keys(object, {"metadata", "annotations", annotation});
  return found && found->is_string() && found->get_string() == "true";
}

// The name, marked as default if one of the column's annotations is set.
json::value class_name(const CellInput& in) {
  std::string text(get_string(in.object, "metadata.name"));
  for (std::string_view annotation : in.arguments) {
    if (is_marked(in.object, annotation)) return json::value(text + " (default)");
  }
  return json::value(text);
}

json::value audiences(const CellInput& in) {
  const json::value* requests = find(in.object, "spec.tokenRequests");
  if (!requests || !requests->is_array()) return json::value("<unset>");
  std::vector<std::string> texts;
  for (const json::value& request : requests->get_array()) texts.emplace_back(get_string(request, "audience"));
  return json::value(join(texts, ","));
}

constexpr NamedCellRule kCsiCells[] = {{"class.name", class_name}, {"driver.audiences", audiences}};

}  // namespace

std::span<const NamedCellRule> csi_cells() { return kCsiCells; }

}  // namespace coracle::schema
