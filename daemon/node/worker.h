// SPDX-License-Identifier: Apache-2.0
// PodWorker: syncs one pod. It reads the desired and the actual state, makes a plan, applies the steps through the runtime, and
// writes the pod's status. Called by the workers' threads, never twice at a time for one pod.
//   PodTable + runtime.sandbox ──observe──▶ PodRecord ──observed_pod, make_plan──▶ steps ──apply──▶ runtime
//                                                └──make_status, status_patch──▶ Client
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/event/recorder.h"
#include "daemon/informer/informer.h"
#include "daemon/node/action.h"
#include "daemon/node/class_weights.h"
#include "daemon/node/config.h"
#include "daemon/node/id_ranges.h"
#include "daemon/node/pod_table.h"
#include "daemon/node/probe/probes.h"
#include "daemon/node/record.h"
#include "daemon/node/start_order.h"
#include "daemon/node/task_pool.h"
#include "daemon/node/volume/nfs_mounts.h"
#include "daemon/node/volume/volumes.h"
#include "daemon/queue/work_queue.h"
#include "runtime/runtime.h"
#include "store/client/client.h"

namespace coracle::node {

struct PullDone {
  std::string reference;
  int attempt = 0;
  Result<runtime::Image> image;
  std::chrono::milliseconds took;
};

// Progress of an image pull, for a container's next attempt or for a volume.
struct Pull {
  int attempt = -1;  // the attempt that it is for
  int told = -1;     // the last attempt for which an event reported that the image is present
  bool running = false, done = false;
  std::string image_id;  // the pulled image
  BackOff back_off;
  SteadyTime failed_at;
  std::string reason, error;                      // of the last failure; "" if there was none
  bool is_unreachable = false;                    // the last failure: no registry has answered
  std::vector<runtime::Credentials> credentials;  // used for the pull; empty once the image is present
};

// Reports of other threads about a pod, for its next sync.
struct Reports {
  std::map<std::string, Hook> hooks;      // by "<container id> postStart" and "<container id> preStop"
  std::map<std::string, PullDone> pulls;  // by container, or "volume/" and the volume's name
  std::string evicted;                    // the reason of the eviction; "" if there is none
};

// Pods that wait for an image: the pod's uid and the key of the pull.
using WantingImages = std::set<std::pair<std::string, std::string>>;

struct WorkerSeams {
  const AgentConfig& config;
  Client& client;
  Informer& config_maps;
  Informer& secrets;
  Informer& services;
  volume::StorageObjects storage;
  runtime::Runtime& runtime;
  const PodNetworkHooks& network;
  EventRecorder events;
  PodTable& table;
  Probes& probes;
  const Actions& actions;
  Executor pulls;     // runs long tasks on other threads
  Executor removals;  // the same, for deleting volumes
  std::function<void(const std::string& uid, Task task)> hooks;
  std::function<void(const std::string& server, Task task)> servers;  // tasks that wait for a file server
  std::function<void(const std::string& uid)> look_again;             // queues a pod for the workers
  std::function<void(const std::string& uid)> look_again_if_alive;    // the same; may be called when all of this has ended
  std::function<json::object()> allocatable;
  std::function<ObjectPtr()> node;  // as the API has it; null: not known yet
  std::function<void()> images_changed;
  StartOrder& start_order;
  Guarded<std::set<std::string>>& draining;  // pods that wait for the Service rules, by uid
  Guarded<WantingImages>& wanting_images;
  std::function<std::string(const Object& pod)> held_back;  // see AgentSeams
  std::function<void(const std::string& ns)> readiness_changed;
  std::function<bool(int pid, int signal)> is_dropped;                            // see AgentSeams
  std::function<std::optional<SteadyTime>(const json::value& pod)> node_ends_by;  // see ObservedPod
  const Clock& clock;
};

class PodWorker {
 public:
  explicit PodWorker(WorkerSeams seams);
  ~PodWorker();

  // Loads what pods of an earlier daemon hold. Call before the first sync.
  void find_ids(const std::vector<runtime::SandboxState>& sandboxes) { ids_.load(sandboxes); }
  // Removes the files of pods that are no longer in the API and that an earlier daemon had not finished removing; continues that
  // daemon's deletions. Call before the first sync, when the table is complete. `with_static`: also of static pods.
  void remove_left(bool with_static) const;
  // Syncs the pod with this uid (key.name). Errors: what failed; the caller retries with back-off.
  Result<Outcome> reconcile(const Key& key);
  // From any thread: whether the place of the host can be looked at now. Blocks for AgentConfig::place_patience at most.
  bool answers(const std::string& place);
  // From any thread: the pod exceeds a limit and ends as failed.
  void evict(const std::string& uid, std::string why);

 private:
  friend struct SyncState;
  friend class SyncPart;
  struct Entry {
    PodRecord record;
    RestingPtr written;                                    // the last status written, until the informer has it too
    std::map<std::string, Pull, std::less<>> pulls;        // as in Reports
    std::map<std::string, int, std::less<>> start_failed;  // by container: the attempt that could not be started
    std::optional<WallTime> volumes_refresh_at;
    bool looked = false, told_unenforceable = false, told_refused = false, weighed = false;
    std::stop_source gone;                                  // what its hooks look at
    std::string missing_pull_secrets;                       // as told
    std::map<std::string, SteadyTime> mount_failures_told;  // by text
    std::optional<SteadyTime> ready_since;                  // since this daemon has told so
    std::optional<SteadyTime> drain_from, drain_deadline;   // set once
  };
  std::shared_ptr<Entry> entry_of(const std::string& uid);
  void drop(const std::string& uid);  // call when the pod is forgotten
  Result<void> remove_left(const std::string& uid) const;
  // For other threads, which may finish long after the pod was forgotten: then the report is dropped.
  template <typename F>
  void report(const std::string& uid, F&& f) {
    entries_.with([&](auto& entries) {
      if (entries.count(uid)) reports_.with([&](auto& reports) { f(reports[uid]); });
    });
  }

  WorkerSeams seams_;
  NfsMounts nfs_;
  SlowPlaces places_;
  Volumes volumes_;
  IdRanges ids_;
  ClassWeights class_weights_;
  Bytes machine_memory_;
  Guarded<std::map<std::string, std::shared_ptr<Entry>>> entries_;
  Guarded<std::map<std::string, Reports>> reports_;
};

}  // namespace coracle::node
