// SPDX-License-Identifier: Apache-2.0
// StorageLimits: pods that take more of the node's disk than they may are evicted. What counts: emptyDir volumes on the disk, the
// containers' logs, writable layers and termination logs, the pod's hosts file. Only pods that name a limit (emptyDir.sizeLimit,
// limits of ephemeral-storage) are measured, one after the other, and never for more than a fiftieth of the time.
//   look(), every kStorageLook ──▶ measure_storage (a walk, elsewhere) ──storage_excess──▶ evict(uid, why)
// Source: Kubernetes local ephemeral storage; kubelet's eviction manager, localStorageEviction (semantics, order, texts).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "daemon/node/pace.h"
#include "daemon/node/pod_table.h"
#include "daemon/node/task_pool.h"
#include "runtime/base/clock.h"
#include "runtime/base/units.h"
#include "runtime/runtime.h"

namespace coracle::node {

struct StorageUse {
  std::map<std::string, Bytes> volumes;     // emptyDirs on the disk, by name
  std::map<std::string, Bytes> containers;  // by name: what each of them writes outside of volumes
  Bytes total;                              // of the pod
};

// Whether something of the pod is limited. Pure.
bool has_storage_limits(const json::value& pod);
// Which limit is passed, worded for the pod's status; "" when none is. Pure.
std::string storage_excess(const json::value& pod, const StorageUse& use);
// What there is to measure for the pod's limits, measured. Blocks for walks through all of it. Errors: cancelled.
Result<StorageUse> measure_storage(const json::value& pod, const std::string& uid, const PodPaths& paths,
                                   runtime::Runtime& runtime, std::stop_token stop);

class StorageLimits {
 public:
  // `elsewhere` runs the walks. `evict` is called from there.
  StorageLimits(const AgentConfig& config, PodTable& table, runtime::Runtime& runtime, const Clock& clock, Executor elsewhere,
                std::function<void(const std::string& uid, std::string why)> evict);

  // Has those measured that are due. Does not block.
  void look();

 private:
  bool is_limited(const std::string& uid, const DesiredPod& pod);
  void measure(const std::string& uid, const ObjectPtr& pod, std::stop_token stop);

  const AgentConfig& config_;
  PodTable& table_;
  runtime::Runtime& runtime_;
  const Clock& clock_;
  const Executor elsewhere_;
  const std::function<void(const std::string&, std::string)> evict_;
  Pace<std::string> pace_;  // by uid, of those that are limited
};

}  // namespace coracle::node
