// SPDX-License-Identifier: Apache-2.0
// Usage of the claims' volumes of this node's pods: from the volume's project quota if one enforces its size; for a volume
// watched by VolumeWatch, from its last measurement and its size; otherwise from its file system, as the kubelet reports local
// volumes. It makes a few system calls per volume and never walks directories.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/node/pod.h"
#include "daemon/volume/backing.h"
#include "runtime/base/units.h"
#include "runtime/sys/project_quota.h"
#include "store/schema/views.h"

namespace coracle::node {

struct VolumeUse {
  Key claim;
  std::string volume;  // the PersistentVolume's name
  Bytes capacity, used, available;
  uint64_t inodes = 0, inodes_used = 0, inodes_free = 0;
};

// The directory of a local or hostPath volume; "" for other volumes.
std::string directory_of(view::PersistentVolumeSpec volume, const std::string& host_root);

struct VolumeMeters {
  std::function<bool(const std::string& path)> answers;  // the path can be looked at now
  // The use of the project by which the directory's size is enforced; nullopt if nothing enforces it.
  std::function<std::optional<sys::ProjectUse>(const std::string& path, const Fd& directory)> quota;
  std::function<std::optional<Bytes>(const Key& claim)> watched;  // as VolumeWatch has measured it
};
// The usage of each claim of these pods, once and sorted. Volumes that cannot be measured now are left out.
std::vector<VolumeUse> measure_volumes(const std::vector<ObjectPtr>& pods, const volume::StorageObjects& storage,
                                       const std::string& host_root, const VolumeMeters& meters);

}  // namespace coracle::node
