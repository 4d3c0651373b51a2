// SPDX-License-Identifier: Apache-2.0
// Cells of volumes and claims, quotas, and component statuses.
#include <algorithm>

#include "runtime/base/text.h"
#include "store/schema/table/cells.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

std::string modes_of(view::Range<std::string_view> modes) {
  std::vector<std::string> shown;
  for (auto [mode, brief] : {std::pair{"ReadWriteOnce", "RWO"}, std::pair{"ReadOnlyMany", "ROX"},
                             std::pair{"ReadWriteMany", "RWX"}, std::pair{"ReadWriteOncePod", "RWOP"}}) {
    if (std::find(modes.begin(), modes.end(), std::string_view(mode)) != modes.end()) shown.emplace_back(brief);
  }
  return join(shown, ",");
}

std::string quantity_or_zero(const json::object& amounts, std::string_view name) {
  const json::value* found = amounts.if_contains(name);
  return found && found->is_string() ? std::string(found->get_string()) : "0";
}

json::value phase(const CellInput& in) {
  bool ending = !get_string(in.object, "metadata.deletionTimestamp").empty();
  return json::value(ending ? "Terminating" : get_string(in.object, "status.phase"));
}

json::value storage_class(const CellInput& in) {
  const json::object& annotations = get_object(in.object, "metadata.annotations");
  const json::value* old = annotations.if_contains("volume.beta.kubernetes.io/storage-class");
  return old && old->is_string() ? *old : json::value(get_string(in.object, "spec.storageClassName"));
}

json::value volume_capacity(const CellInput& in) {
  return json::value(quantity_or_zero(view::PersistentVolume(in.object).spec().capacity(), "storage"));
}

json::value volume_modes(const CellInput& in) {
  return json::value(modes_of(view::PersistentVolume(in.object).spec().access_modes()));
}

json::value volume_claim(const CellInput& in) {
  view::ObjectReference claim = view::PersistentVolume(in.object).spec().claim_ref();
  return json::value(claim ? std::string(claim.namespace_()) + "/" + std::string(claim.name()) : std::string());
}

json::value claim_capacity(const CellInput& in) {
  view::PersistentVolumeClaim claim(in.object);
  return json::value(claim.spec().volume_name().empty() ? std::string() : quantity_or_zero(claim.status().capacity(), "storage"));
}

json::value claim_modes(const CellInput& in) {
  view::PersistentVolumeClaim claim(in.object);
  return json::value(claim.spec().volume_name().empty() ? std::string() : modes_of(claim.status().access_modes()));
}

// "name: used/hard" for limits or for all others, sorted by name.
json::value quota(const CellInput& in, bool limits) {
  view::ResourceQuotaStatus status = view::ResourceQuota(in.object).status();
  std::vector<std::string> names, shown;
  for (const auto& pair : status.hard()) names.emplace_back(pair.key());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name.starts_with("limits.") != limits) continue;
    shown.push_back(name + ": " + quantity_or_zero(status.used(), name) + "/" + quantity_or_zero(status.hard(), name));
  }
  return json::value(join(shown, ", "));
}
json::value quota_requests(const CellInput& in) { return quota(in, false); }
json::value quota_limits(const CellInput& in) { return quota(in, true); }

view::ComponentCondition health(const CellInput& in) {
  for (view::ComponentCondition condition : view::ComponentStatus(in.object).conditions()) {
    if (condition.type() == "Healthy") return condition;
  }
  return {};
}

json::value component_status(const CellInput& in) {
  view::ComponentCondition condition = health(in);
  if (!condition) return json::value("Unknown");
  return json::value(condition.status() == "True" ? "Healthy" : "Unhealthy");
}
json::value component_message(const CellInput& in) { return json::value(health(in).message()); }
json::value component_error(const CellInput& in) { return json::value(health(in).error()); }

constexpr NamedCellRule kStorageCells[] = {{"phase", phase},
                                           {"storage_class", storage_class},
                                           {"volume.capacity", volume_capacity},
                                           {"volume.modes", volume_modes},
                                           {"volume.claim", volume_claim},
                                           {"claim.capacity", claim_capacity},
                                           {"claim.modes", claim_modes},
                                           {"quota.requests", quota_requests},
                                           {"quota.limits", quota_limits},
                                           {"component.status", component_status},
                                           {"component.message", component_message},
                                           {"component.error", component_error}};

}  // namespace

std::span<const NamedCellRule> storage_cells() { return kStorageCells; }

}  // namespace coracle::schema
