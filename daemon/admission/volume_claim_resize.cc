// SPDX-License-Identifier: Apache-2.0
// PersistentVolumeClaimResize: a bound claim may request more if its class allows expansion. Source: Kubernetes
// plugin/pkg/admission/storage/persistentvolume/resize.
#include "daemon/admission/plugin.h"
#include "daemon/quota/usage.h"
#include "store/object/object.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

Quantity storage_of(const json::value& claim) {
  return amount_in(view::PersistentVolumeClaim(claim).spec().resources().requests(), "storage").value_or(Quantity());
}

class VolumeClaimResize : public Plugin {
 public:
  std::string_view name() const override { return "PersistentVolumeClaimResize"; }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    bool concerned =
        request.kind == kPersistentVolumeClaim && request.subresource.empty() && request.operation == Operation::update;
    if (!concerned || storage_of(*request.object) <= storage_of(request.old->json())) return {};
    if (view::PersistentVolumeClaim(*request.old).status().phase() != "Bound")
      return refuse(request, "Only bound persistent volume claims can be expanded");
    std::string name = quota::storage_class_of(*request.object);
    ObjectPtr storage_class =
        name.empty() || name != quota::storage_class_of(request.old->json()) ? nullptr : cluster.get(kStorageClass, {"", name});
    if (storage_class && view::StorageClass(*storage_class).allow_volume_expansion()) return {};
    return refuse(
        request,
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize");
  }
};

}  // namespace

std::unique_ptr<Plugin> make_volume_claim_resize() { return std::make_unique<VolumeClaimResize>(); }

}  // namespace coracle::admission
