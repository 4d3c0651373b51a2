// SPDX-License-Identifier: Apache-2.0
// DefaultStorageClass: sets the default class, if there is one, in a claim without a class. The class "" means none. Source:
// Kubernetes plugin/pkg/admission/storage/storageclass/setdefault.
#include "daemon/admission/plugin.h"
#include "store/kinds/meta/default_object.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

class DefaultStorageClass : public Plugin {
 public:
  std::string_view name() const override { return "DefaultStorageClass"; }

  Result<void> admit(Request& request, const ClusterState& cluster) const override {
    if (!request.creates(kPersistentVolumeClaim)) return {};
    view::PersistentVolumeClaim claim(*request.object);
    bool has_class = claim.spec().has_storage_class_name() ||
                     claim.metadata().annotations().contains("volume.beta.kubernetes.io/storage-class");
    if (has_class) return {};
    ObjectPtr found = default_object(cluster.list(kStorageClass), kDefaultStorageClass);
    if (found) make(*request.object, "spec.storageClassName") = found->name();
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_default_storage_class() { return std::make_unique<DefaultStorageClass>(); }

}  // namespace coracle::admission
