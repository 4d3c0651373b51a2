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
inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";  // on a claim: it has its volume
inline constexpr std::string_view kBoundByController =
    "pv.kubernetes.io/bound-by-controller";                                            // on both: nobody asked for this pair
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";  // on a volume: who made it
inline constexpr std::string_view kProvisioner = "volume.kubernetes.io/storage-provisioner";  // on a claim: who is to make one
inline constexpr std::string_view kBetaProvisioner = "volume.beta.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kSelectedNode =
    "volume.kubernetes.io/selected-node";                                           // on a claim: where its first pod will run
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";  // volumes of such a class are made by people

// The provisioners that a class may name to get directories of a node (volume/local): ours, and the one that k3s brings.
inline constexpr std::string_view kLocalProvisioners[] = {"coracle.io/directory", "rancher.io/local-path"};
bool is_local_provisioner(std::string_view name);

// The class of a claim or a volume, by its field or by the annotation that came before it; "": none.
std::string class_of(const Object& object);
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

// Why the claim cannot be bound to the volume, in Kubernetes' words ("requested PV is too small"); "" when it can. Selector and
// phase are not checked, since a claim may name its volume.
std::string mismatch(const Object& volume, const Object& claim);

// Returns the volume that is reserved for the claim, else the smallest Available one that matches; null when there is none.
// `reserved_only`: considers only reserved volumes. `filter`: considers only volumes that it accepts.
using VolumeFilter = std::function<bool(const Object& volume)>;
ObjectPtr find_matching_volume(const std::vector<ObjectPtr>& volumes, const Object& claim, bool reserved_only,
                               const VolumeFilter& filter);
// The same of a claim that waits for no node, as the binder chooses: of those that match the ones with the fewest access modes,
// then the smallest of these. So what many may share is left to those who ask for it.
ObjectPtr find_matching_volume(const std::vector<ObjectPtr>& volumes, const Object& claim, bool reserved_only);

}  // namespace coracle::volume
