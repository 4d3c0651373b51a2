// SPDX-License-Identifier: Apache-2.0
// StorageObjectInUseProtection: adds a finalizer to new claims, volumes and VolumeAttributesClasses; the protection controller
// removes it when they are not used any more. Source: Kubernetes plugin/pkg/admission/storage/storageobjectinuseprotection.
#include <algorithm>

#include "daemon/admission/plugin.h"

namespace coracle::admission {
namespace {

class StorageObjectInUseProtection : public Plugin {
 public:
  std::string_view name() const override { return "StorageObjectInUseProtection"; }

  Result<void> admit(Request& request, const ClusterState&) const override {
    std::string_view finalizer = request.info.traits.finalizer;
    if (finalizer.empty() || !request.creates(request.kind)) return {};
    json::array& all = make_array(*request.object, "metadata.finalizers");
    if (std::find(all.begin(), all.end(), json::value(finalizer)) == all.end()) all.emplace_back(finalizer);
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_storage_object_in_use_protection() { return std::make_unique<StorageObjectInUseProtection>(); }

}  // namespace coracle::admission
