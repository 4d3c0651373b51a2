// SPDX-License-Identifier: Apache-2.0
// See managed_fields.h.
#include "ctl/managed_fields.h"

#include <algorithm>

#include "ctl/last_applied.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

bool is_entry(view::ManagedFieldsEntry entry, std::string_view manager, std::string_view operation) {
  return entry.manager() == manager && entry.operation() == operation && entry.subresource().empty();
}

// FieldsV1 is a tree of names. Merges `from` into `into`.
void unite(json::value& into, const json::value& from) {
  if (!from.is_object()) return;
  if (!into.is_object()) into.emplace_object();
  for (const auto& [name, below] : from.get_object()) unite(into.get_object()[name], below);
}

void hand_over(json::array& entries, std::string_view updater, std::string_view manager) {
  auto first = [&](auto&& fits) { return std::find_if(entries.begin(), entries.end(), fits); };
  auto updates = [&](const json::value& entry) { return is_entry(view::ManagedFieldsEntry(entry), updater, "Update"); };
  auto target = first([&](const json::value& entry) { return is_entry(view::ManagedFieldsEntry(entry), manager, "Apply"); });
  if (target == entries.end()) {  // the updater's latest entry becomes an Apply entry
    target = first(updates);
    if (target == entries.end()) return;
    target->get_object()["manager"] = manager;
    target->get_object()["operation"] = "Apply";
  }
  auto same_version = first([&](const json::value& entry) {
    return updates(entry) && view::ManagedFieldsEntry(entry).api_version() == view::ManagedFieldsEntry(*target).api_version();
  });
  if (same_version != entries.end())
    if (const json::value* fields = view::ManagedFieldsEntry(*same_version).fields_v1())
      unite(target->get_object()["fieldsV1"], *fields);
  entries.erase(std::remove_if(entries.begin(), entries.end(), updates), entries.end());
}

}  // namespace

std::vector<std::string> owners_of_last_applied(const json::value& object, std::string_view operation) {
  std::vector<std::string> owners;
  const std::string annotation = "f:" + std::string(kLastApplied);
  for (view::ManagedFieldsEntry entry : metadata_of(object).managed_fields()) {
    std::string manager(entry.manager());
    const json::value* fields = entry.fields_v1();
    if (entry.operation() == operation && fields && find_keys(*fields, {"f:metadata", "f:annotations", annotation}) &&
        std::find(owners.begin(), owners.end(), manager) == owners.end())
      owners.push_back(std::move(manager));
  }
  return owners;
}

std::optional<json::value> handover_patch(const json::value& object, const std::vector<std::string>& updaters,
                                          std::string_view manager) {
  const json::array& before = metadata_of(object).managed_fields().raw();
  json::array entries = before;
  for (const auto& updater : updaters) hand_over(entries, updater, manager);
  if (entries == before) return std::nullopt;
  return json::array{
      json::object{{"op", "replace"}, {"path", "/metadata/managedFields"}, {"value", std::move(entries)}},
      json::object{{"op", "replace"}, {"path", "/metadata/resourceVersion"}, {"value", metadata_of(object).resource_version()}}};
}

}  // namespace coracle::ctl
