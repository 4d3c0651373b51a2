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

// The CSI driver that has taken over from a driver that Kubernetes contained; else the name itself. Source: csi-translation-lib.
std::string_view driver_of(std::string_view provisioner) {
  static constexpr std::pair<std::string_view, std::string_view> kMigrated[] = {
      {"kubernetes.io/aws-ebs", "ebs.csi.aws.com"},
      {"kubernetes.io/azure-disk", "disk.csi.azure.com"},
      {"kubernetes.io/azure-file", "file.csi.azure.com"},
      {"kubernetes.io/cinder", "cinder.csi.openstack.org"},
      {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io"},
      {"kubernetes.io/portworx-volume", "pxd.portworx.com"},
      {"kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"},
  };
  for (auto [in_tree, csi] : kMigrated)
    if (provisioner == in_tree) return csi;
  return provisioner;
}

std::string no_plugin(std::string_view driver) { return "no volume plugin matched name: " + std::string(driver); }

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
  const std::string_view selected = observed.claim->annotation(volume::kSelectedNode);
  if (!selected.empty() && observed.has_selected_node) return pending();
  if (!selected.empty()) {  // with the node its provisioner is gone
    ClaimPlan plan = pending(true, "ProvisioningFailed", "node " + quoted(selected) + " not found");
    plan.unselect = true;
    return plan;
  }
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
  if (!volume::names_class(claim) && observed.default_class) {  // a volume without a class also matches
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
  std::string provisioner(driver_of(view::StorageClass(*storage_class).provisioner()));
  if (provisioner.starts_with(volume::kInTree)) return pending(true, "ProvisioningFailed", no_plugin(provisioner));
  return plan_provisioning(observed, std::move(provisioner));
}

// A bound claim asks for more than it has, and another program has to give it.
bool waits_for_expansion(const Object& claim, const Object& volume) {
  view::PersistentVolumeClaimStatus status = view::PersistentVolumeClaim(claim).status();
  const json::value* has = status.capacity().if_contains("storage");
  if (!has || status.phase() != "Bound" || volume::is_local_provisioner(volume.annotation(volume::kProvisionedBy))) return false;
  auto size = Quantity::from_json(*has);
  return size && *size < volume::request_of(claim);
}

ClaimPlan plan_for_bound(const ObservedClaim& observed) {
  const Object& claim = *observed.claim;
  if (view::PersistentVolumeClaim(claim).spec().volume_name().empty())
    return lost("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
  if (!observed.named) return lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  if (has_claim(*observed.named) && !volume::is_reserved_for(*observed.named, claim))
    return lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");
  ClaimPlan plan = bind_to(observed.named);
  if (waits_for_expansion(claim, *observed.named))
    plan.expansion = VolumeEvent{false, "ExternalExpanding", "waiting for an external controller to expand this PVC"};
  return plan;
}

VolumePlan failed(std::string_view reason, std::string message) {
  VolumePlan plan;
  plan.phase = "Failed";
  plan.message = message;
  plan.event = VolumeEvent{true, reason, std::move(message)};
  return plan;
}

// Why nobody can delete the volume; "" if there is somebody.
std::string without_deleter(const Object& volume) {
  if (!volume.annotation(volume::kMigratedTo).empty()) return "";
  std::string_view maker = volume.annotation(volume::kProvisionedBy);
  if (maker.starts_with(volume::kInTree)) return no_plugin(maker);
  if (!maker.empty() || view::PersistentVolume(volume).spec().has_csi()) return "";
  return "error getting deleter volume plugin for volume " + quoted(volume.name()) + ": no deletable volume plugin matched";
}

// Its claim is deleted. The provisioner deletes a volume that it created; a volume that an administrator created stays.
VolumePlan plan_released(const Object& volume) {
  view::PersistentVolume view(volume);
  VolumePlan plan;
  if (view.status().phase() != "Released" && view.status().phase() != "Failed") {  // those who wait for it see this phase first
    plan.phase = "Released";
    return plan;
  }
  std::string_view policy = view.spec().persistent_volume_reclaim_policy();
  if (policy == "Recycle" && volume.annotation(volume::kMigratedTo).empty())
    return failed("VolumeFailedRecycle",
                  "No recycler plugin found for the volume! Set persistentVolumeReclaimPolicy to Retain or Delete");
  std::string why = policy == "Delete" ? without_deleter(volume) : std::string();
  return why.empty() ? plan : failed("VolumeFailedDelete", std::move(why));
}

// The claim's own plan passes over such a volume in silence, though it is reserved for the claim.
VolumePlan plan_other_mode(const Object& volume, const Object& claim) {
  VolumePlan plan;
  plan.event = VolumeEvent{true, "VolumeMismatch",
                           "Cannot bind PersistentVolume to requested PersistentVolumeClaim " + quoted(claim.name()) +
                               " due to incompatible volumeMode."};
  plan.of_claim = VolumeEvent{true, "VolumeMismatch",
                              "Cannot bind PersistentVolume " + quoted(volume.name()) +
                                  " to requested PersistentVolumeClaim due to incompatible volumeMode."};
  return plan;
}

// The capacity of a claim that becomes bound to the volume: the file system may be smaller than the volume still.
json::object capacity_of_claim(const Object& volume) {
  json::object capacity = view::PersistentVolume(volume).spec().capacity();
  std::string_view before = volume.annotation(volume::kPreResizeCapacity);
  if (!before.empty() && Quantity::parse(before)) capacity["storage"] = before;
  return capacity;
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
  else if (named.empty() && volume::has_other_mode(volume, *claim)) return plan_other_mode(volume, *claim);
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
  make_object(body, "spec")["claimRef"] = volume::claim_reference(claim);
  if (!named) make_object(body, "metadata.annotations")[volume::kBoundByController] = "yes";
  return body;
}

std::optional<json::value> with_volume(const Object& claim, const Object& volume) {
  bool named = view::PersistentVolumeClaim(claim).spec().volume_name() == volume.name();
  if (named && !claim.annotation(volume::kBindCompleted).empty()) return std::nullopt;
  json::value body = claim.json();
  make_object(body, "spec")["volumeName"] = volume.name();
  json::object& annotations = make_object(body, "metadata.annotations");
  annotations[volume::kBindCompleted] = "yes";
  if (!named) annotations[volume::kBoundByController] = "yes";
  if (std::string_view maker = volume.annotation(volume::kProvisionedBy); !maker.empty())
    annotations[volume::kProvisioner] = annotations[volume::kBetaProvisioner] = maker;
  return body;
}

json::value without_claim(const Object& volume) {
  json::value body = volume.json();
  bool by_controller = !volume.annotation(volume::kBoundByController).empty();
  json::object& spec = make_object(body, "spec");
  if (!by_controller) {
    json::object& reference = make_object(body, "spec.claimRef");
    reference.erase("uid"), reference.erase("resourceVersion");
    return body;
  }
  spec.erase("claimRef");
  make_object(body, "metadata.annotations").erase(volume::kBoundByController);
  return body;
}

json::value unbound_status(const Object& claim, std::string_view phase) {
  json::object out = view::PersistentVolumeClaim(claim).status().members();
  out["phase"] = phase;
  for (std::string_view of_volume : {"accessModes", "capacity", "currentVolumeAttributesClassName"}) out.erase(of_volume);
  return out;
}

json::value bound_status(const Object& claim, const Object& volume) {
  view::PersistentVolumeClaim view(claim);
  view::PersistentVolumeSpec spec = view::PersistentVolume(volume).spec();
  json::object out = view.status().members();
  out["phase"] = "Bound";
  if (spec.has_access_modes()) out["accessModes"] = spec.access_modes().raw();
  // Later the claim's capacity is updated by expansion.
  if (view.status().phase() != "Bound" || view.status().capacity().empty()) out["capacity"] = capacity_of_claim(volume);
  // Later its attributes are those that a resizer has given to the volume.
  const bool is_new = view.status().phase() == "Pending";
  if (is_new && spec.has_volume_attributes_class_name())
    out["currentVolumeAttributesClassName"] = spec.volume_attributes_class_name();
  else if (is_new) out.erase("currentVolumeAttributesClassName");
  return out;
}

}  // namespace coracle::controller
