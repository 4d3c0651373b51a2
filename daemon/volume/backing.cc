// SPDX-License-Identifier: Apache-2.0
// See backing.h.
#include "daemon/volume/backing.h"

#include "daemon/volume/match.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::volume {

std::string claim_name(std::string_view pod, const json::value& volume) {
  view::Volume view(volume);
  if (view.has_persistent_volume_claim()) return std::string(view.persistent_volume_claim().claim_name());
  if (view.has_ephemeral()) return std::string(pod) + "-" + std::string(view.name());
  return "";
}

Result<Backing> backing_of(const json::value& pod, const json::value& volume, const StorageObjects& objects) {
  view::ObjectMeta metadata = view::Pod(pod).metadata();
  Key key{std::string(metadata.namespace_()), claim_name(metadata.name(), volume)};
  auto in_claim = [&](Code code, const std::string& text) {
    return Error(code, "error processing PVC " + key.text() + ": " + text);
  };
  Backing backing{
      .claim = objects.claim(key), .volume = nullptr, .read_only = view::Volume(volume).persistent_volume_claim().read_only()};
  if (!backing.claim) return in_claim(Code::not_found, "persistentvolumeclaim " + quoted(key.name) + " not found");
  if (view::Volume(volume).has_ephemeral()) {
    auto owner = backing.claim->controller();
    if (!owner || owner->uid != metadata.uid())
      return in_claim(Code::conflict, "PVC " + key.text() + " was not created for pod " + key.ns + "/" +
                                          std::string(metadata.name()) + " (pod is not owner)");
  }
  if (backing.claim->deleting()) return in_claim(Code::conflict, "PVC is being deleted");
  view::PersistentVolumeClaim claim(*backing.claim);
  std::string name(claim.spec().volume_name());
  if (!is_bound(*backing.claim))
    return in_claim(Code::unavailable, "PVC " + key.text() + " has non-bound phase (" + quoted(claim.status().phase()) +
                                           ") or empty pvc.Spec.VolumeName (" + quoted(name) + ")");
  backing.volume = objects.volume(name);
  if (!backing.volume) return in_claim(Code::not_found, "persistentvolume " + quoted(name) + " not found");
  if (view::PersistentVolume(*backing.volume).spec().claim_ref().uid() != backing.claim->uid())
    return in_claim(Code::conflict, "persistentvolume " + quoted(name) + " is bound to a different PVC");
  if (objects.keeps_out && objects.keeps_out(key))
    return in_claim(Code::unavailable, "PVC " + key.text() + " is being exported or imported");
  return backing;
}

}  // namespace coracle::volume
