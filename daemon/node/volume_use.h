// SPDX-License-Identifier: Apache-2.0
// How full the volumes of claims are that this node's pods have: by the quota of a volume where it has one; of one that is
// watched (VolumeWatch), by what it held last and its size; else by the disk that it is on, as kubelet tells it of local volumes.
// No walk: a few system calls a volume.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/node/pod.h"
#include "daemon/volume/backing.h"
#include "runtime/base/units.h"
#include "store/schema/views.h"

namespace coracle::node {

struct VolumeUse {
  Key claim;
  std::string volume;  // the PersistentVolume's name
  Bytes capacity, used, available;
  uint64_t inodes = 0, inodes_used = 0, inodes_free = 0;
};

// The directory that a volume is; "" when it is none.
std::string directory_of(view::PersistentVolumeSpec volume, const std::string& host_root);

// Of each claim of these pods once, sorted. What cannot be measured now is left out.
std::vector<VolumeUse> measure_volumes(const std::vector<ObjectPtr>& pods, const volume::StorageObjects& storage,
                                       const std::string& host_root,
                                       const std::function<std::optional<Bytes>(const Key& claim)>& watched);

}  // namespace coracle::node
