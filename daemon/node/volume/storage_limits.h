// SPDX-License-Identifier: Apache-2.0
// StorageLimits: evicts pods that exceed their limits of ephemeral storage. It counts emptyDir volumes on the disk, container
// logs, writable layers, termination logs and the pod's hosts file. It measures only pods with a limit (emptyDir.sizeLimit,
// limits of ephemeral-storage), one after the other, at most a fiftieth of the time.
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
  std::map<std::string, Bytes> containers;  // by name: what each container writes outside of volumes
  Bytes total;                              // of the pod
};

// Whether the pod has a storage limit. Pure.
bool has_storage_limits(const json::value& pod);
// The exceeded limit, as a message for the pod's status; "" if none is exceeded. Pure.
std::string storage_excess(const json::value& pod, const StorageUse& use);
// Measures the pod's storage as far as its limits need it. Blocks for directory walks. Errors: cancelled.
Result<StorageUse> measure_storage(const json::value& pod, const std::string& uid, const PodPaths& paths,
                                   runtime::Runtime& runtime, std::stop_token stop);

class StorageLimits {
 public:
  // `elsewhere` runs the walks and calls `evict`.
  StorageLimits(const AgentConfig& config, PodTable& table, runtime::Runtime& runtime, const Clock& clock, Executor elsewhere,
                std::function<void(const std::string& uid, std::string why)> evict);

  // Starts the measurements that are due. Does not block.
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
  Pace<std::string> pace_;  // by uid, of the pods with limits
};

}  // namespace coracle::node
