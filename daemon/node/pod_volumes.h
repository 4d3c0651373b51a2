// SPDX-License-Identifier: Apache-2.0
// PodVolumes: the part of a sync that prepares a pod's volumes and refreshes them. What each kind of volume is: volume/volumes.h.
#pragma once

#include <vector>

#include "daemon/node/sync_part.h"

namespace coracle::node {

class PodVolumes : private SyncPart {
 public:
  explicit PodVolumes(SyncState& state) : SyncPart(state) {}

  // Errors: unavailable while a source or a place is missing or does not answer. Events report the causes.
  Result<void> prepare();
  // Updates the volumes of running containers from their sources. Content whose source is missing stays.
  void refresh();
  // Before a container opens volumes that were prepared some time ago. Errors: as prepare.
  Result<void> ask_places();

 private:
  void note_waiting(const VolumeResult& result);
  void note_mount_failures(const std::vector<MountFailure>& failures, bool waits);
};

}  // namespace coracle::node
