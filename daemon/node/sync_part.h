// SPDX-License-Identifier: Apache-2.0
// SyncPart: the base of the parts of one sync of one pod: what they all know of the pod, and what they may report. PodSync
// (pod_sync.h) decides and calls the other parts; each of these does one thing:
//   PodObserver  compares the record with the runtime, takes reports and probe results
//   PodVolumes   prepares and refreshes the volumes
//   PodImages    finds and pulls the images
//   PodSandbox   creates and removes the sandbox and its network, releases and forgets the pod
//   ContainerStart, ContainerStop
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/node/container_spec.h"
#include "daemon/node/worker.h"

namespace coracle::node {

constexpr std::chrono::seconds kConfigErrorRetry{10};               // retry interval of a container with a configuration error
constexpr const char* kConfigError = "CreateContainerConfigError";  // a waiting reason

// The key of a running hook: "<container id> postStart".
std::string hook_name(const ContainerRecord& record, const char* hook);
SteadyTime steady_of(WallTime when, const Clock& clock);

// The state of one sync, which its parts share.
struct SyncState {
  PodWorker& worker;
  PodWorker::Entry& entry;
  std::string uid;
  DesiredPod desired;  // the sync's own copy
  PodPaths paths = {};
  ObjectPtr indexed = {};  // the pod that `containers` indexes
  std::optional<ContainerIndex> containers = {};
  bool forgotten = false;  // the pod is gone, and nothing of it is left
  bool waits = false;      // the failure was reported, and `again` is the time of the retry
  std::optional<SteadyTime> again = {};
};

class SyncPart {
 protected:
  explicit SyncPart(SyncState& state);
  SyncPart(const SyncPart&) = delete;
  SyncPart& operator=(const SyncPart&) = delete;

  // ---- the pod ----
  const json::value& pod() const { return desired_.object->json(); }
  const ContainerIndex& containers();
  // The object for reading the status: the newer of the informer's and the last one that this agent wrote.
  ObjectPtr api() const;
  bool deleting() const { return desired_.gone || desired_.object->deleting(); }
  PodIdentity identity() const { return {seams_.config.node_name, seams_.config.node_ips, record_.ips, seams_.allocatable()}; }
  Lookup lookup() const;
  std::string pod_text() const { return record_.key.name + "_" + record_.key.ns + "(" + uid_ + ")"; }
  Result<std::optional<uint32_t>> first_id();
  Bytes machine_memory() const { return state_.worker.machine_memory_; }

  // ---- reports ----
  Result<void> write_status();
  void event(bool warning, std::string_view reason, std::string message, const ContainerRef* container = nullptr) const;
  void again_at(SteadyTime when) { state_.again = state_.again ? std::min(*state_.again, when) : when; }
  static void wait_with(ContainerRecord& record, std::string reason, std::string message);
  void config_error(const ContainerRef& container, ContainerRecord& record, std::string reason, const Error& error);
  void note_released();  // for users_of_claim()
  void wake_successors(const Key& name) const;
  void drop() const { state_.worker.drop(uid_); }  // call when the pod is forgotten

  // ---- other threads ----
  void begin_hook(const ContainerRef& container, const ContainerRecord& record, const char* hook, std::chrono::seconds timeout);
  Reports take_all_reports() const;
  // For a task on another thread, which may finish long after the pod was forgotten: see PodWorker::report.
  template <typename F>
  static void report(PodWorker& worker, const std::string& uid, F&& f) {
    worker.report(uid, std::forward<F>(f));
  }

  SyncState& state_;
  WorkerSeams& seams_;
  PodWorker::Entry& entry_;
  PodRecord& record_;
  const std::string& uid_;
  DesiredPod& desired_;
  PodPaths& paths_;
  Volumes& node_volumes_;
  IdRanges& id_ranges_;
  ClassWeights& class_weights_;
};

}  // namespace coracle::node
