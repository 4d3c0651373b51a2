// SPDX-License-Identifier: Apache-2.0
// PersistentVolumes record when their phase changed; claims have their data source in the old and in the new field. Source:
// Kubernetes "Persistent Volumes", "Phase transition timestamp", "Data source references".
#include "store/kinds/strategy.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

Result<void> begin_volume(json::value& volume, const Allocation& allocation) {
  make(volume, "status.phase") = "Pending";
  make(volume, "status.lastPhaseTransitionTime") = format_time(allocation.now);
  return {};
}

// Sets the transition time if the client changes the phase without setting it.
void note_phase(json::value& volume, const json::value& old, WallTime now) {
  view::PersistentVolumeStatus status = view::PersistentVolume(volume).status(), before = view::PersistentVolume(old).status();
  std::string_view given = status.last_phase_transition_time();
  bool changed = status.phase() != before.phase(), told = !given.empty() && given != before.last_phase_transition_time();
  if (changed && !told) make(volume, "status.lastPhaseTransitionTime") = format_time(now);
}

json::object without_namespace(const json::value& reference) {
  json::object out;
  for (std::string_view name : {"apiGroup", "kind", "name"}) {
    if (const json::value* found = find(reference, name)) out[name] = *found;
  }
  return out;
}

bool is_known_source(view::TypedLocalObjectReference source) {
  std::string_view group = source.api_group(), kind = source.kind();
  return (group.empty() && kind == "PersistentVolumeClaim") || (group == "snapshot.storage.k8s.io" && kind == "VolumeSnapshot");
}

// dataSource may refer to claims and snapshots; other references are dropped. dataSourceRef is kept as given.
void fill_sources(json::value& claim) {
  view::PersistentVolumeClaimSpec spec = view::PersistentVolumeClaim(claim).spec();
  if (spec.has_data_source() && !spec.has_data_source_ref() && !is_known_source(spec.data_source()))
    make(claim, "spec").get_object().erase("dataSource");
  if (spec.has_data_source() && !spec.has_data_source_ref()) {
    json::object copy = without_namespace(spec.data_source().raw());
    make(claim, "spec.dataSourceRef") = std::move(copy);
  } else if (spec.has_data_source_ref() && !spec.has_data_source() && spec.data_source_ref().namespace_().empty()) {
    json::object copy = without_namespace(spec.data_source_ref().raw());
    make(claim, "spec.dataSource") = std::move(copy);
  }
}

Result<void> begin_claim(json::value& claim, const Allocation&) {
  make(claim, "status.phase") = "Pending";
  return {};
}

// Restores dataSourceRef if an old client sends the claim back without it.
void fill_sources_again(json::value& claim, const json::value& old) {
  view::PersistentVolumeClaimSpec spec = view::PersistentVolumeClaim(claim).spec();
  bool had = view::PersistentVolumeClaim(old).spec().has_data_source();
  if (!spec.has_data_source() || !had || spec.has_data_source_ref()) return fill_sources(claim);
  json::object copy = without_namespace(spec.data_source().raw());
  make(claim, "spec.dataSourceRef") = std::move(copy);
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
