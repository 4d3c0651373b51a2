// SPDX-License-Identifier: Apache-2.0
// See volume_use.h.
#include "daemon/node/volume/volume_use.h"

#include <fcntl.h>

#include <algorithm>
#include <set>

#include "daemon/volume/match.h"
#include "runtime/sys/file.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::node {
namespace {

Result<VolumeUse> measure(const std::string& place, const VolumeMeters& meters) {
  if (!meters.answers(place)) return Error(Code::timeout, place + " does not answer");
  Fd directory = TRY(sys::open(place, O_RDONLY | O_DIRECTORY));
  auto disk = TRY(sys::disk_usage(directory));
  VolumeUse use;
  use.capacity = disk.total, use.available = disk.available, use.used = disk.total - disk.available;
  use.inodes = disk.inodes, use.inodes_free = disk.inodes_free, use.inodes_used = disk.inodes - disk.inodes_free;
  auto quota = meters.quota(place, directory);
  if (!quota) return use;
  use.capacity = quota->limit, use.used = quota->used;
  use.available = std::min(disk.available, std::max(Bytes(0), quota->limit - quota->used));
  use.inodes_used = quota->inodes, use.inodes = quota->inodes + disk.inodes_free;
  return use;
}

}  // namespace

std::string directory_of(view::PersistentVolumeSpec volume, const std::string& host_root) {
  if (volume.has_local()) return std::string(volume.local().path());
  if (volume.has_host_path()) return host_root + std::string(volume.host_path().path());
  return "";
}

std::vector<VolumeUse> measure_volumes(const std::vector<ObjectPtr>& pods, const volume::StorageObjects& storage,
                                       const std::string& host_root, const VolumeMeters& meters) {
  std::vector<VolumeUse> found;
  std::set<Key> seen;
  for (const ObjectPtr& pod : pods) {
    if (ends_by_itself(pod->json())) continue;
    for (view::Volume volume : view::Pod(*pod).spec().volumes()) {
      Key claim{pod->ns(), volume::claim_name(pod->name(), volume.raw())};
      if (claim.name.empty() || !seen.insert(claim).second) continue;
      auto backing = volume::backing_of(pod->json(), volume.raw(), storage);
      auto use = backing ? measure(directory_of(view::PersistentVolume(*backing->volume).spec(), host_root), meters)
                         : backing.take_error();
      if (!use) continue;
      if (auto held = meters.watched(claim)) {
        use->capacity = volume::capacity_of(*backing->volume).bytes(), use->used = *held;
        use->available = std::min(use->available, std::max(Bytes(0), use->capacity - use->used));
      }
      use->claim = claim, use->volume = backing->volume->name();
      found.push_back(*std::move(use));
    }
  }
  std::ranges::sort(found, {}, &VolumeUse::claim);
  return found;
}

}  // namespace coracle::node
