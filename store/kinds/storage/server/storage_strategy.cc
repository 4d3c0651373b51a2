// SPDX-License-Identifier: Apache-2.0
// PersistentVolumes record when their phase changed; claims have their data source in the old and in the new field. Source:
// Kubernetes "Persistent Volumes", "Phase transition timestamp", "Data source references".
#include "store/kinds/strategy.h"

namespace coracle::kinds {
namespace {

Result<void> begin_volume(json::value& volume, const Allocation& allocation) {
  make(volume, "status.phase") = "Pending";
  make(volume, "status.lastPhaseTransitionTime") = format_time(allocation.now);
  return {};
}

// Sets the transition time if the client changes the phase without setting it.
void note_phase(json::value& volume, const json::value& old, WallTime now) {
  constexpr std::string_view kTime = "status.lastPhaseTransitionTime";
  bool changed = get_string(volume, "status.phase") != get_string(old, "status.phase");
  bool told = !get_string(volume, kTime).empty() && get_string(volume, kTime) != get_string(old, kTime);
  if (changed && !told) make(volume, kTime) = format_time(now);
}

json::object without_namespace(const json::value& reference) {
  json::object out;
  for (std::string_view name : {"apiGroup", "kind", "name"}) {
    if (const json::value* found = find(reference, name)) out[name] = *found;
  }
  return out;
}

bool is_known_source(const json::value& source) {
  std::string_view group = get_string(source, "apiGroup"), kind = get_string(source, "kind");
  return (group.empty() && kind == "PersistentVolumeClaim") || (group == "snapshot.storage.k8s.io" && kind == "VolumeSnapshot");
}

// dataSource may refer to claims and snapshots; other references are dropped. dataSourceRef is kept as given.
void fill_sources(json::value& claim) {
  const json::value *given = find(claim, "spec.dataSource"), *kept = find(claim, "spec.dataSourceRef");
  if (given && !kept && !is_known_source(*given)) make(claim, "spec").get_object().erase("dataSource");
  const json::value *source = find(claim, "spec.dataSource"), *reference = find(claim, "spec.dataSourceRef");
  if (source && !reference) {
    json::object copy = without_namespace(*source);
    make(claim, "spec.dataSourceRef") = std::move(copy);
  } else if (reference && !source && get_string(*reference, "namespace").empty()) {
    json::object copy = without_namespace(*reference);
    make(claim, "spec.dataSource") = std::move(copy);
  }
}

Result<void> begin_claim(json::value& claim, const Allocation&) {
  make(claim, "status.phase") = "Pending";
  return {};
}

// Restores dataSourceRef if an old client sends the claim back without it.
void fill_sources_again(json::value& claim, const json::value& old) {
  const json::value *source = find(claim, "spec.dataSource"), *reference = find(claim, "spec.dataSourceRef");
  const json::value* before = find(old, "spec.dataSource");
  if (source && before && !reference) make(claim, "spec.dataSourceRef") = without_namespace(*source);
  else fill_sources(claim);
}

}  // namespace

extern const StrategyFamily storage_strategies;
const StrategyFamily storage_strategies{
    {{.kind = &kPersistentVolume, .prepare_status = note_phase, .allocate_create = begin_volume},
     {.kind = &kPersistentVolumeClaim,
      .prepare_create = fill_sources,
      .prepare_update = fill_sources_again,
      .allocate_create = begin_claim}}};

}  // namespace coracle::kinds
