// SPDX-License-Identifier: Apache-2.0
// Registers this folder. PersistentVolumes and claims, storage classes, CSI objects.
#include "store/kinds/storage/storage_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kStorageKinds[] = {
    {.api_version = "v1", .resource = "persistentvolumes", .update = check_volume_update},
    {.api_version = "v1", .resource = "persistentvolumeclaims", .update = check_claim_update},
    {.api_version = "storage.k8s.io/v1", .resource = "storageclasses", .update = check_csi_update},
    {.api_version = "storage.k8s.io/v1", .resource = "csidrivers", .update = check_csi_update},
    {.api_version = "storage.k8s.io/v1", .resource = "csinodes", .update = check_csi_update},
    {.api_version = "storage.k8s.io/v1", .resource = "csistoragecapacities", .update = check_csi_update},
    {.api_version = "storage.k8s.io/v1",
     .resource = "volumeattachments",
     .update = check_csi_update,
     .status = check_attachment_status},
    {.api_version = "storage.k8s.io/v1", .resource = "volumeattributesclasses", .update = check_csi_update},
};

}  // namespace

extern const KindFamily storage_family;
const KindFamily storage_family{
    .validation = {storage_rules, csi_rules},
    .cells = {storage_cells, csi_cells},
    .kinds = kStorageKinds,
};

}  // namespace coracle::schema
