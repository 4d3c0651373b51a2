// SPDX-License-Identifier: Apache-2.0
// See match.h.
#include "daemon/volume/match.h"

#include <algorithm>
#include <set>

#include "daemon/quota/usage.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/selector.h"
#include "store/schema/views.h"

namespace coracle::volume {
namespace {

Quantity amount(const json::object& amounts, std::string_view name) {
  const json::value* value = amounts.if_contains(name);
  auto quantity = value ? Quantity::from_json(*value) : Result<Quantity>(Quantity());
  return quantity ? *quantity : Quantity();
}

std::string_view mode_or_default(std::string_view mode) { return mode.empty() ? "Filesystem" : mode; }

bool offers_modes(view::PersistentVolumeSpec volume, view::PersistentVolumeClaimSpec claim) {
  auto offered = volume.access_modes(), wanted = claim.access_modes();
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](std::string_view mode) { return std::find(offered.begin(), offered.end(), mode) != offered.end(); });
}

// The order is that of Kubernetes, whose event names the first reason.
std::string find_mismatch(const Object& volume, const Object& claim, bool compares_classes) {
  view::PersistentVolumeSpec offered = view::PersistentVolume(volume).spec();
  view::PersistentVolumeClaimSpec wanted = view::PersistentVolumeClaim(claim).spec();
  if (volume.deleting()) return "the volume is marked for deletion " + quoted(volume.name());
  if (capacity_of(volume) < request_of(claim)) return "requested PV is too small";
  if (compares_classes && class_of(volume) != class_of(claim)) return "storageClassName does not match";
  if (offered.volume_attributes_class_name() != wanted.volume_attributes_class_name())
    return "volumeAttributesClassName does not match";
  if (has_other_mode(volume, claim)) return "incompatible volumeMode";
  if (!offers_modes(offered, wanted)) return "incompatible accessMode";
  return "";
}

bool has_labels(const Object& volume, const Object& claim) {
  const json::value* selector = view::PersistentVolumeClaim(claim).spec().selector().pointer();
  if (!selector) return true;
  auto labels = LabelSelector::from_json(selector);
  return labels && labels->matches(volume);
}

size_t count_modes(const Object& volume) {
  auto modes = view::PersistentVolume(volume).spec().access_modes();
  return std::set<std::string_view>(modes.begin(), modes.end()).size();
}

bool is_smaller(const Object& one, const Object& other) { return capacity_of(one) < capacity_of(other); }

bool has_fewer_modes(const Object& one, const Object& other) {
  const size_t modes = count_modes(one), others = count_modes(other);
  return modes != others ? modes < others : is_smaller(one, other);
}

template <typename Suits, typename Better>
ObjectPtr find_best(const std::vector<ObjectPtr>& volumes, const Object& claim, bool reserved_only, Suits suits, Better better) {
  ObjectPtr best;
  for (const ObjectPtr& volume : volumes) {
    view::PersistentVolume view(*volume);
    bool reserved = is_reserved_for(*volume, claim);
    bool free = !view.spec().has_claim_ref() && view.status().phase() == "Available";
    if (!(reserved || (free && !reserved_only))) continue;
    // The class is not compared at first, because an administrator may have reserved it. Nor is there another one for the claim.
    if (!find_mismatch(*volume, claim, false).empty()) continue;
    if (reserved) return suits(*volume) ? volume : nullptr;
    if (!suits(*volume) || class_of(*volume) != class_of(claim) || !has_labels(*volume, claim)) continue;
    if (!best || better(*volume, *best)) best = volume;
  }
  return best;
}

}  // namespace

bool is_local_provisioner(std::string_view name) {
  return std::ranges::find(kLocalProvisioners, name) != std::end(kLocalProvisioners);
}

std::string class_of(const Object& object) { return quota::storage_class_of(object.json()); }

bool names_class(const Object& claim) {
  view::PersistentVolumeClaim view(claim);
  return view.spec().has_storage_class_name() ||
         view.metadata().annotations().contains("volume.beta.kubernetes.io/storage-class");
}

Quantity capacity_of(const Object& volume) { return amount(view::PersistentVolume(volume).spec().capacity(), "storage"); }

Quantity request_of(const Object& claim) {
  return amount(view::PersistentVolumeClaim(claim).spec().resources().requests(), "storage");
}

bool is_bound(const Object& claim) {
  view::PersistentVolumeClaim view(claim);
  return !view.spec().volume_name().empty() && (!claim.annotation(kBindCompleted).empty() || view.status().phase() == "Bound");
}

bool waits_for_consumer(const Object* storage_class) {
  return storage_class && view::StorageClass(*storage_class).volume_binding_mode() == "WaitForFirstConsumer";
}

json::value claim_reference(const Object& claim) {
  return {{"apiVersion", "v1"},      {"kind", "PersistentVolumeClaim"},
          {"namespace", claim.ns()}, {"name", claim.name()},
          {"uid", claim.uid()},      {"resourceVersion", std::to_string(claim.revision())}};
}

bool is_reserved_for(const Object& volume, const Object& claim) {
  view::PersistentVolumeSpec spec = view::PersistentVolume(volume).spec();
  if (!spec.has_claim_ref()) return false;
  view::ObjectReference reference = spec.claim_ref();
  return reference.name() == claim.name() && reference.namespace_() == claim.ns() &&
         (reference.uid().empty() || reference.uid() == claim.uid());
}

bool has_other_mode(const Object& volume, const Object& claim) {
  return mode_or_default(view::PersistentVolume(volume).spec().volume_mode()) !=
         mode_or_default(view::PersistentVolumeClaim(claim).spec().volume_mode());
}

std::string mismatch(const Object& volume, const Object& claim) { return find_mismatch(volume, claim, true); }

ObjectPtr find_matching_volume(const std::vector<ObjectPtr>& volumes, const Object& claim, bool reserved_only,
                               const VolumeFilter& filter) {
  return find_best(volumes, claim, reserved_only, filter, is_smaller);
}

ObjectPtr find_matching_volume(const std::vector<ObjectPtr>& volumes, const Object& claim, bool reserved_only) {
  return find_best(
      volumes, claim, reserved_only, [](const Object&) { return true; }, has_fewer_modes);
}

}  // namespace coracle::volume
