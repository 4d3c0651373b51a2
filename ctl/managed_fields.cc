// SPDX-License-Identifier: Apache-2.0
// See managed_fields.h.
#include "ctl/managed_fields.h"

#include <algorithm>

#include "ctl/last_applied.h"

namespace coracle::ctl {
namespace {

bool is_entry(const json::value& entry, std::string_view manager, std::string_view operation) {
  return get_string(entry, "manager") == manager && get_string(entry, "operation") == operation &&
         get_string(entry, "subresource").empty();
}

// FieldsV1 is a tree of names. Merges `from` into `into`.
void unite(json::value& into, const json::value& from) {
  if (!from.is_object()) return;
  if (!into.is_object()) into.emplace_object();
  for (const auto& [name, below] : from.get_object()) unite(into.get_object()[name], below);
}

void hand_over(json::array& entries, std::string_view updater, std::string_view manager) {
  auto first = [&](auto&& fits) { return std::find_if(entries.begin(), entries.end(), fits); };
  auto updates = [&](const json::value& entry) { return is_entry(entry, updater, "Update"); };
  auto target = first([&](const json::value& entry) { return is_entry(entry, manager, "Apply"); });
  if (target == entries.end()) {  // the updater's latest entry becomes an Apply entry
    target = first(updates);
    if (target == entries.end()) return;
    target->get_object()["manager"] = manager;
    target->get_object()["operation"] = "Apply";
  }
  auto same_version = first([&](const json::value& entry) {
    return updates(entry) && get_string(entry, "apiVersion") == get_string(*target, "apiVersion");
  });
  if (same_version != entries.end())
    if (const json::value* fields = find(*same_version, "fieldsV1")) unite(target->get_object()["fieldsV1"], *fields);
  entries.erase(std::remove_if(entries.begin(), entries.end(), updates), entries.end());
}

}  // namespace

std::vector<std::string> owners_of_last_applied(const json::value& object, std::string_view operation) {
  std::vector<std::string> owners;
  const std::string annotation = "f:" + std::string(kLastApplied);
  for (const auto& entry : get_array(object, "metadata.managedFields")) {
    std::string manager(get_string(entry, "manager"));
    if (get_string(entry, "operation") == operation &&
        find_keys(entry, {"fieldsV1", "f:metadata", "f:annotations", annotation}) &&
        std::find(owners.begin(), owners.end(), manager) == owners.end())
      owners.push_back(std::move(manager));
  }
  return owners;
}

std::optional<json::value> handover_patch(const json::value& object, const std::vector<std::string>& updaters,
                                          std::string_view manager) {
  const json::array& before = get_array(object, "metadata.managedFields");
  json::array entries = before;
  for (const auto& updater : updaters) hand_over(entries, updater, manager);
  if (entries == before) return std::nullopt;
  return json::array{
      json::object{{"op", "replace"}, {"path", "/metadata/managedFields"}, {"value", std::move(entries)}},
      json::object{
          {"op", "replace"}, {"path", "/metadata/resourceVersion"}, {"value", get_string(object, "metadata.resourceVersion")}}};
}

}  // namespace coracle::ctl
