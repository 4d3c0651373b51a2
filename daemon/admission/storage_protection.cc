// SPDX-License-Identifier: Apache-2.0
// StorageObjectInUseProtection: claims, volumes and their attributes' classes begin with a finalizer, which the protection
// controller takes away once nobody uses them. Source: Kubernetes plugin/pkg/admission/storage/storageobjectinuseprotection.
#include <algorithm>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"

namespace coracle::admission {
namespace {

class StorageObjectInUseProtection : public Plugin {
 public:
  std::string_view name() const override { return "StorageObjectInUseProtection"; }

  Result<void> admit(Request& request, const World&) const override {
    if (request.creates(kPersistentVolumeClaim)) protect(request, "kubernetes.io/pvc-protection");
    if (request.creates(kPersistentVolume)) protect(request, "kubernetes.io/pv-protection");
    if (request.creates(kVolumeAttributesClass)) protect(request, "kubernetes.io/vac-protection");
    return {};
  }

 private:
  static void protect(Request& request, std::string_view finalizer) {
    json::array& all = array_at(*request.object, "metadata.finalizers");
    if (std::find(all.begin(), all.end(), json::value(finalizer)) == all.end()) all.emplace_back(finalizer);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_storage_object_in_use_protection() { return std::make_unique<StorageObjectInUseProtection>(); }

}  // namespace coracle::admission
