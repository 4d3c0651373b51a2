// SPDX-License-Identifier: Apache-2.0
// Which PersistentVolume a claim can be bound to. The binder, the scheduler and the node agent share these rules. Pure.
// Source: Kubernetes "Persistent Volumes"; component-helpers storage/volume (semantics).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/object/object_ptr.h"
#include "store/object/quantity.h"

namespace coracle::volume {

// Kubernetes' annotations of claims and volumes.
inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";  // on a claim: its binding is complete
inline constexpr std::string_view kBoundByController =
    "pv.kubernetes.io/bound-by-controller";                                            // on both: the controller chose this pair
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";  // on a volume: its provisioner
// On a claim: the provisioner that must create its volume.
inline constexpr std::string_view kProvisioner = "volume.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kBetaProvisioner = "volume.beta.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";  // on a claim: the node of its first pod
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";       // volumes are created by administrators

// On a claim or volume of a driver that Kubernetes contained before: the CSI driver that has taken over.
inline constexpr std::string_view kMigratedTo = "pv.kubernetes.io/migrated-to";
// On a volume: the size that its claim shows until the file system has grown, too.
inline constexpr std::string_view kPreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity";
// Begins the names of the drivers that Kubernetes contains or contained.
inline constexpr std::string_view kInTree = "kubernetes.io/";

// The provisioners of classes for node directories (volume/local): this daemon's, and that of k3s.
inline constexpr std::string_view kLocalProvisioners[] = {"coracle.io/directory", "rancher.io/local-path"};
bool is_local_provisioner(std::string_view name);

// The class of a claim or volume, from its field or from the older annotation; "": none.
std::string class_of(const Object& object);
bool names_class(const Object& claim);  // perhaps "", which is not the default class
Quantity capacity_of(const Object& volume);
Quantity request_of(const Object& claim);

// The claim names a volume, and the binder has completed the binding.
bool is_bound(const Object& claim);
// The class has volumeBindingMode WaitForFirstConsumer. `storage_class` may be null.
bool waits_for_consumer(const Object* storage_class);
// The claim as a volume's spec.claimRef.
json::value claim_reference(const Object& claim);
// The volume's claimRef names this claim, without a uid or with the claim's uid.
bool is_reserved_for(const Object& volume, const Object& claim);

// One is a file system, and the other a block device.
bool has_other_mode(const Object& volume, const Object& claim);
// Why the claim cannot be bound to the volume, with Kubernetes' text ("requested PV is too small"); "" if it can. Selector and
// phase are not checked, because a claim may name its volume. Source: pv_controller.go, checkVolumeSatisfyClaim.
std::string mismatch(const Object& volume, const Object& claim);

// Returns the volume that is reserved for the claim, else the smallest Available one that matches; null if there is none.
// `reserved_only`: considers only reserved volumes. `filter`: null if it does not accept the reserved one; of the others it
// considers only those that it accepts.
using VolumeFilter = std::function<bool(const Object& volume)>;
ObjectPtr find_matching_volume(const std::vector<ObjectPtr>& volumes, const Object& claim, bool reserved_only,
                               const VolumeFilter& filter);
// The same for a claim that waits for no node, as the binder chooses: of the matching volumes those with the fewest access modes,
// and the smallest of these. So volumes that can be shared are left for claims that need it.
ObjectPtr find_matching_volume(const std::vector<ObjectPtr>& volumes, const Object& claim, bool reserved_only);

}  // namespace coracle::volume
