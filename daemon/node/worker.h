// SPDX-License-Identifier: Apache-2.0
// PodWorker: one look at one pod. Reads what is wanted and what is there, plans, carries the steps out through the runtime,
// and says in the pod's status what came of it. Called by the workers' threads, never for one pod twice at a time.
//   PodTable + runtime.sandbox ──look──▶ PodRecord ──facts_of, make_plan──▶ steps ──apply──▶ runtime
//                                             └──make_status, status_patch──▶ Client
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
#include "daemon/node/nfs_mounts.h"
#include "daemon/node/pod_table.h"
#include "daemon/node/probes.h"
#include "daemon/node/record.h"
#include "daemon/node/start_order.h"
#include "daemon/node/task_pool.h"
#include "daemon/node/volumes.h"
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

// How far an image has come: that of a container's next attempt, or of a volume.
struct Pull {
  int attempt = -1;  // it was asked for
  int told = -1;     // the attempt for which events told that it is there
  bool running = false, done = false;
  std::string image_id;  // what came
  BackOff back_off;
  SteadyTime failed_at;
  std::string reason, error;                      // why it failed last; "" when it did not
  std::vector<runtime::Credentials> credentials;  // that it was asked for with; none once it has come
};

// What other threads report about a pod until its next look.
struct Reports {
  std::map<std::string, Hook> hooks;      // by "<container id> postStart" and "<container id> preStop"
  std::map<std::string, PullDone> pulls;  // by container, or "volume/" and the volume's name
  std::string evicted;                    // why the pod is to end; "" when it is not
};

// Who waits for an image to come: the pod's uid, and the name of the pull.
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
  Executor pulls;     // threads for what takes long
  Executor removals;  // the same for deleting what was in volumes
  std::function<void(const std::string& uid, Task task)> hooks;
  std::function<void(const std::string& server, Task task)> servers;  // those of what waits for a server
  std::function<void(const std::string& uid)> look_again;             // names a pod for the workers
  std::function<json::object()> allocatable;
  std::function<ObjectPtr()> node;  // as the API has it; null: not known yet
  std::function<void()> images_changed;
  StartOrder& start_order;
  Guarded<std::set<std::string>>& draining;  // pods that wait for the service rules, by uid
  Guarded<WantingImages>& wanting_images;
  std::function<std::string(const Object& pod)> held_back;  // see AgentSeams
  std::function<void(const std::string& ns)> readiness_changed;
  std::function<bool(int pid, int signal)> is_dropped;                            // see AgentSeams
  std::function<std::optional<SteadyTime>(const json::value& pod)> node_ends_by;  // see PodFacts
  const Clock& clock;
};

class PodWorker {
 public:
  explicit PodWorker(WorkerSeams seams);
  ~PodWorker();

  // Learns what pods have already that a daemon before this one began. Before the first look.
  void find_ids(const std::vector<runtime::SandboxState>& sandboxes) { ids_.load(sandboxes); }
  // What pods left that nobody knows any more, since the API has forgotten them and a daemon before this one ended while it
  // removed them; goes on with what that one was deleting. Before the first look, once the table has all that there are.
  void remove_left() const;
  // One look at the pod of this uid (key.name). Errors: what went wrong; the look comes again with back-off.
  Result<Outcome> reconcile(const Key& key);
  // From any thread: the pod takes what it may not, and ends as failed.
  void evict(const std::string& uid, std::string why);

 private:
  friend class PodSync;
  struct Entry {
    PodRecord record;
    RestingPtr written;                                    // our newest status, until the informer has it too
    std::map<std::string, Pull, std::less<>> pulls;        // as in Reports
    std::map<std::string, int, std::less<>> start_failed;  // by container: the attempt that never came to life
    std::optional<WallTime> volumes_refresh_at;
    bool looked = false, told_unenforceable = false, weighed = false;
    std::stop_source gone;             // what its hooks look at
    std::string missing_pull_secrets;  // as told
    std::string mount_error;           // as told
    SteadyTime mount_error_told;
    std::optional<SteadyTime> ready_since;                 // since this daemon has told so
    std::optional<SteadyTime> drain_from, drain_deadline;  // set once
  };
  std::shared_ptr<Entry> entry_of(const std::string& uid);
  void drop(const std::string& uid);  // the pod is forgotten
  Result<void> remove_left(const std::string& uid) const;
  // For other threads, which may be done long after that: a report about a pod that is forgotten is nobody's.
  template <typename F>
  void report(const std::string& uid, F&& f) {
    entries_.with([&](auto& entries) {
      if (entries.count(uid)) reports_.with([&](auto& reports) { f(reports[uid]); });
    });
  }

  WorkerSeams seams_;
  NfsMounts nfs_;
  Volumes volumes_;
  IdRanges ids_;
  ClassWeights class_weights_;
  Bytes machine_memory_;
  Guarded<std::map<std::string, std::shared_ptr<Entry>>> entries_;
  Guarded<std::map<std::string, Reports>> reports_;
};

}  // namespace coracle::node
