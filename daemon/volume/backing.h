// SPDX-License-Identifier: Apache-2.0
// Finds the PersistentVolume of a pod's volume that uses a claim. Pure.
// Source: Kubernetes core/v1 PersistentVolumeClaimVolumeSource, EphemeralVolumeSource; kubelet's desired state of volumes
// (texts).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::volume {

// The name of the claim that a volume of the pod uses: of persistentVolumeClaim, or of the claim that is created for an ephemeral
// volume. "" for other volumes.
std::string claim_name(std::string_view pod, const json::value& volume);

// The caller's caches. They return null when the object does not exist.
struct StorageObjects {
  std::function<ObjectPtr(const Key& key)> claim;
  std::function<ObjectPtr(std::string_view name)> volume;
  std::function<bool(const Key& key)> keeps_out = {};  // its volume is being exported or imported, and pods wait. Absent: never
};

struct Backing {
  ObjectPtr claim, volume;
  bool read_only = false;  // for this pod
};
// Returns the claim and its PersistentVolume if they are bound to each other. Errors, with kubelet's texts: not_found;
// unavailable if the claim is not bound yet, or is being exported or imported; conflict if the volume is bound to another claim,
// the claim was created for another pod, or the claim is being deleted.
Result<Backing> backing_of(const json::value& pod, const json::value& volume, const StorageObjects& objects);

}  // namespace coracle::volume
