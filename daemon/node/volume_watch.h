// SPDX-License-Identifier: Apache-2.0
// VolumeWatch: volumes that this node made for claims, and that no quota holds to their size, are measured while pods have them;
// an event on the claim says when one holds more than it should. One after the other, once a minute at most, and never for more
// than a fiftieth of the time. Nothing is measured where the file system holds the limits.
//   look(), every kStorageLook ──▶ measure (a walk, elsewhere) ──▶ used() · event
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
  Executor elsewhere;                                 // runs the walks
  std::function<bool(const Object& volume)> is_ours;  // made by this node's provisioner
};

class VolumeWatch {
 public:
  explicit VolumeWatch(VolumeWatchSeams seams) : seams_(std::move(seams)) {}
  void look();  // has those measured that are due. Does not block
  // How much the claim's volume held when it was measured last; nothing when it is not measured.
  std::optional<Bytes> used(const Key& claim) const;

 private:
  struct Found {
    bool is_over = false;
    std::optional<Bytes> used;
  };
  void measure(const volume::Backing& backing, std::stop_token stop);

  VolumeWatchSeams seams_;
  Pace<Key> pace_;                       // by claim
  Guarded<std::map<Key, Found>> found_;  // the same, of those that pods have
};

}  // namespace coracle::node
