// SPDX-License-Identifier: Apache-2.0
// VolumeWatch: looks at volumes that this node provisioned, while pods use them. If a quota enforces the size, it corrects a
// project that a program has changed, and an event on the claim says so. Only the project of the volume's own directory is looked
// at, not those of directories in it: see the limit in project_numbers.h. Otherwise it measures the volume, and an event reports
// a volume that exceeds its size. Volumes of one directory are looked at one after the other, each at most once a minute and at
// most a fiftieth of the time. No directory is walked if the file system enforces the sizes.
//   look(), every kStorageLook ──▶ hold, else measure (a walk, elsewhere) ──▶ used() · event
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "daemon/event/recorder.h"
#include "daemon/node/pace.h"
#include "daemon/node/pod_table.h"
#include "daemon/node/task_pool.h"
#include "daemon/volume/backing.h"
#include "daemon/volume/local/directories.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/base/units.h"

namespace coracle::node {

constexpr std::chrono::seconds kVolumePeriod{60};

struct VolumeWatchSeams {
  PodTable& table;
  volume::StorageObjects storage;
  EventRecorder events;
  const Clock& clock;
  volume::Directories& directories;
  std::function<bool(const std::string& path)> answers;  // the path can be looked at now
  // Runs the walks, those with the same owner one after the other: a disk that hangs holds only those of its own volumes.
  std::function<void(Task walk, const std::string& owner)> elsewhere;
  std::function<bool(const Object& volume)> is_ours;  // created by this node's provisioner
};

class VolumeWatch {
 public:
  explicit VolumeWatch(VolumeWatchSeams seams) : seams_(std::move(seams)) {}
  void look();  // starts the measurements that are due. Does not block
  // The usage of the claim's volume at its last measurement; nullopt if it is not measured.
  std::optional<Bytes> used(const Key& claim) const;

 private:
  struct Found {
    bool is_over = false;
    std::optional<Bytes> used;
  };
  void measure(const volume::Backing& backing, std::stop_token stop);
  Result<std::optional<Bytes>> measured(const volume::Backing& backing, std::stop_token stop);

  VolumeWatchSeams seams_;
  Pace<Key> pace_;                       // by claim
  Guarded<std::map<Key, Found>> found_;  // by claim, of those that pods use
};

}  // namespace coracle::node
