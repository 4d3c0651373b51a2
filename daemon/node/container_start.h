// SPDX-License-Identifier: Apache-2.0
// ContainerStart: the part of a sync that starts a container: its spec, its files, and the record of the attempt. If it cannot
// start yet, the waiting reason is stored for the pod's status.
#pragma once

#include <string>
#include <vector>

#include "daemon/node/pod_images.h"
#include "daemon/node/pod_volumes.h"
#include "daemon/node/sync_part.h"

namespace coracle::node {

class ContainerStart : private SyncPart {
 public:
  ContainerStart(SyncState& state, PodVolumes& volumes, PodImages& images)
      : SyncPart(state), volumes_(volumes), images_(images) {}

  // Errors: those of the volumes. Other failures are in the container's record.
  Result<void> start(const std::string& name);

 private:
  Result<runtime::ContainerSpec> container_spec(const ContainerRef& container, const ContainerRecord& record,
                                                const runtime::Image& image, int attempt);
  Result<std::string> target_id(const ContainerRef& container) const;
  Result<std::string> apparmor_profile(const json::value& container) const;
  Result<std::string> shared_memory();
  Result<std::vector<ManagedFile>> managed_files(const ContainerRef& container, int attempt);
  void begin_attempt(ContainerRecord& record, int attempt);
  void note_started(const ContainerRef& container, ContainerRecord& record);
  void show_log(const ContainerRecord& record) const;
  void note_start_failed(const ContainerRef& container, ContainerRecord& record, int attempt, const Error& error);
  bool free_disk_space(const ContainerRecord& record);
  void remove_old_attempts(const ContainerRecord& record);

  PodVolumes& volumes_;
  PodImages& images_;
};

}  // namespace coracle::node
