// SPDX-License-Identifier: Apache-2.0
// The plan for claims and volumes. See volume_binder.h.
#include <algorithm>

#include "daemon/controller/shared/common.h"
#include "daemon/controller/storage/volume_binder.h"
#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle::controller {
namespace {

ClaimPlan pending() {
  ClaimPlan plan;
  plan.phase = "Pending";
  return plan;
}

ClaimPlan pending(bool warning, std::string_view reason, std::string message) {
  ClaimPlan plan = pending();
  plan.event = VolumeEvent{warning, reason, std::move(message)};
  return plan;
}

ClaimPlan lost(std::string_view reason, std::string message) {
  ClaimPlan plan;
  plan.phase = "Lost";
  plan.event = VolumeEvent{true, reason, std::move(message)};
  return plan;
}

ClaimPlan bind_to(ObjectPtr volume) {
  ClaimPlan plan;
  plan.bind = std::move(volume);
  return plan;
}

bool names_no_class(const Object& claim) {
  return !view::PersistentVolumeClaim(claim).spec().has_storage_class_name() && volume::class_of(claim).empty();
}

bool has_claim(const Object& volume) { return view::PersistentVolume(volume).spec().has_claim_ref(); }

// A claim with spec.volumeName.
ClaimPlan plan_for_named(const ObservedClaim& observed) {
  const Object& claim = *observed.claim;
  if (!observed.named) return pending();  // it may be created later
  const Object& volume = *observed.named;
  if (!has_claim(volume)) {
    std::string why = volume::mismatch(volume, claim);
    if (why.empty()) return bind_to(observed.named);
    return pending(true, "VolumeMismatch", "Cannot bind to requested volume " + quoted(volume.name()) + ": " + why);
  }
  if (volume::is_reserved_for(volume, claim)) return bind_to(observed.named);
  return pending(true, "FailedBinding", "volume " + quoted(volume.name()) + " already bound to a different claim.");
}

// A directory belongs to a node: if there are several, the claim's first pod determines it. The provisioner needs only the node's
// name.
ClaimPlan plan_provisioning(const ObservedClaim& observed, std::string provisioner) {
  if (!volume::is_local_provisioner(provisioner)) {
    ClaimPlan plan = pending(false, "ExternalProvisioning",
                             "Waiting for a volume to be created either by the external provisioner '" + provisioner +
                                 "' or manually by the system administrator. If volume creation is delayed, please verify that "
                                 "the provisioner is running and correctly registered.");
    plan.provisioner = std::move(provisioner);
    return plan;
  }
  if (!observed.claim->annotation(volume::kSelectedNode).empty()) return pending();
  if (observed.only_node.empty())
    return pending(true, "ProvisioningFailed",
                   "directories are on one of several nodes: set volumeBindingMode of the class to WaitForFirstConsumer");
  ClaimPlan plan = pending();
  plan.provisioner = std::move(provisioner);
  plan.node = observed.only_node;
  return plan;
}

ClaimPlan plan_for_any(const ObservedClaim& observed) {
  const Object& claim = *observed.claim;
  const Object* storage_class = observed.storage_class.get();
  // Also when the node is selected: the scheduler has looked at the free volumes, and wants a new one there.
  const bool is_scheduled = volume::waits_for_consumer(storage_class);
  const bool waits = is_scheduled && claim.annotation(volume::kSelectedNode).empty();
  if (ObjectPtr volume = volume::find_matching_volume(observed.volumes, claim, is_scheduled)) return bind_to(std::move(volume));
  if (names_no_class(claim) && observed.default_class) {  // a volume without a class also matches
    ClaimPlan plan;
    plan.storage_class = observed.default_class->name();
    return plan;
  }
  if (waits && !observed.pods.empty())
    return pending(
        false, "WaitForPodScheduled",
        (observed.pods.size() > 1 ? "waiting for pods " : "waiting for pod ") + join(observed.pods, ",") + " to be scheduled");
  if (waits) return pending(false, "WaitForFirstConsumer", "waiting for first consumer to be created before binding");
  std::string name = volume::class_of(claim);
  if (name.empty())
    return pending(false, "FailedBinding", "no persistent volumes available for this claim and no storage class is set");
  if (!storage_class) return pending(true, "ProvisioningFailed", "storageclass.storage.k8s.io " + quoted(name) + " not found");
  std::string provisioner(view::StorageClass(*storage_class).provisioner());
  if (provisioner == volume::kNoProvisioner)
    return pending(false, "FailedBinding", "no persistent volumes available for this claim, and its class has no provisioner");
  return plan_provisioning(observed, std::move(provisioner));
}

ClaimPlan plan_for_bound(const ObservedClaim& observed) {
  const Object& claim = *observed.claim;
  if (view::PersistentVolumeClaim(claim).spec().volume_name().empty())
    return lost("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
  if (!observed.named) return lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  if (has_claim(*observed.named) && !volume::is_reserved_for(*observed.named, claim))
    return lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");
  return bind_to(observed.named);
}

VolumePlan failed(std::string_view reason, std::string message) {
  VolumePlan plan;
  plan.phase = "Failed";
  plan.message = message;
  plan.event = VolumeEvent{true, reason, std::move(message)};
  return plan;
}

// Its claim is deleted. The provisioner deletes a volume that it created; a volume that an administrator created stays.
VolumePlan plan_released(const Object& volume) {
  view::PersistentVolume view(volume);
  std::string_view policy = view.spec().persistent_volume_reclaim_policy();
  if (policy == "Recycle")
    return failed("VolumeFailedRecycle", "volumes are not recycled: set persistentVolumeReclaimPolicy to Retain or Delete");
  bool has_maker = !volume.annotation(volume::kProvisionedBy).empty() || view.spec().has_csi();
  if (policy == "Delete" && !has_maker)
    return failed("VolumeFailedDelete", "error getting deleter volume plugin for volume " + quoted(volume.name()) +
                                            ": no deletable volume plugin matched");
  VolumePlan plan;
  if (view.status().phase() != "Failed") plan.phase = "Released";
  return plan;
}

}  // namespace

ClaimPlan plan_claim(const ObservedClaim& observed) {
  const Object& claim = *observed.claim;
  if (!claim.annotation(volume::kBindCompleted).empty()) return plan_for_bound(observed);
  if (claim.deleting()) return {};
  if (!view::PersistentVolumeClaim(claim).spec().volume_name().empty()) return plan_for_named(observed);
  return plan_for_any(observed);
}

VolumePlan plan_volume(const Object& volume, const Object* claim) {
  VolumePlan plan;
  view::PersistentVolume view(volume);
  if (!view.spec().has_claim_ref() || view.spec().claim_ref().uid().empty()) {
    plan.phase = "Available";
    return plan;
  }
  bool same = claim && claim->uid() == view.spec().claim_ref().uid();
  if (!same) return plan_released(volume);
  std::string_view named = view::PersistentVolumeClaim(*claim).spec().volume_name();
  if (named == volume.name()) plan.phase = "Bound";
  // The claim is never bound to a volume that is being deleted, and a Bound one would be kept for it.
  if (named.empty() && volume.deleting()) plan.phase = "Available";
  if (named == volume.name() || named.empty()) return plan;  // the claim's own sync continues from there
  // The claim has another volume. A volume provisioned for it is not needed any more; one that an administrator created is free
  // again.
  bool made_for_it =
      !volume.annotation(volume::kProvisionedBy).empty() && view.spec().persistent_volume_reclaim_policy() == "Delete";
  if (made_for_it) return plan_released(volume);
  plan.unbind = true;
  return plan;
}

std::optional<json::value> with_claim(const Object& volume, const Object& claim) {
  view::PersistentVolumeSpec spec = view::PersistentVolume(volume).spec();
  bool named = spec.has_claim_ref();
  if (named && spec.claim_ref().uid() == claim.uid()) return std::nullopt;
  json::value body = volume.json();
  object_at(body, "spec")["claimRef"] = volume::claim_reference(claim);
  if (!named) object_at(body, "metadata.annotations")[volume::kBoundByController] = "yes";
  return body;
}

std::optional<json::value> with_volume(const Object& claim, const Object& volume) {
  bool named = view::PersistentVolumeClaim(claim).spec().volume_name() == volume.name();
  if (named && !claim.annotation(volume::kBindCompleted).empty()) return std::nullopt;
  json::value body = claim.json();
  object_at(body, "spec")["volumeName"] = volume.name();
  json::object& annotations = object_at(body, "metadata.annotations");
  annotations[volume::kBindCompleted] = "yes";
  if (!named) annotations[volume::kBoundByController] = "yes";
  if (std::string_view maker = volume.annotation(volume::kProvisionedBy); !maker.empty())
    annotations[volume::kProvisioner] = annotations[volume::kBetaProvisioner] = maker;
  return body;
}

json::value without_claim(const Object& volume) {
  json::value body = volume.json();
  bool by_controller = !volume.annotation(volume::kBoundByController).empty();
  json::object& spec = object_at(body, "spec");
  if (!by_controller) {
    json::object& reference = object_at(body, "spec.claimRef");
    reference.erase("uid"), reference.erase("resourceVersion");
    return body;
  }
  spec.erase("claimRef");
  object_at(body, "metadata.annotations").erase(volume::kBoundByController);
  return body;
}

json::value unbound_status(const Object& claim, std::string_view phase) {
  json::object out = view::PersistentVolumeClaim(claim).status().members();
  out["phase"] = phase;
  out.erase("accessModes"), out.erase("capacity");  // those of the volume that it had
  return out;
}

json::value bound_status(const Object& claim, const Object& volume) {
  view::PersistentVolumeClaim view(claim);
  view::PersistentVolumeSpec spec = view::PersistentVolume(volume).spec();
  json::object out = view.status().members();
  out["phase"] = "Bound";
  if (spec.has_access_modes()) out["accessModes"] = spec.access_modes().raw();
  // Later the claim's capacity is updated by expansion.
  if (view.status().phase() != "Bound" || view.status().capacity().empty()) out["capacity"] = spec.capacity();
  if (spec.has_volume_attributes_class_name()) out["currentVolumeAttributesClassName"] = spec.volume_attributes_class_name();
  else out.erase("currentVolumeAttributesClassName");
  return out;
}

}  // namespace coracle::controller
