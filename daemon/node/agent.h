// SPDX-License-Identifier: Apache-2.0
// Agent: the node agent of this machine, as the kubelet. It watches the pods that are bound to its node through an informer, runs
// them through the runtime, and writes their status through the Client. It does not depend on the API server or the store.
//   informers, manifests, runtime.on_change ──▶ queue of uids ──▶ workers ──▶ PodWorker (observe, plan, apply, report)
// Threads: `workers` for pods; a few for probes, pulls and hooks while there are any; one for the Node object; one for static
// pods if there is a manifests directory. On start the agent adopts the sandboxes that an earlier daemon has left.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "daemon/event/recorder.h"
#include "daemon/informer/informer.h"
#include "daemon/node/config.h"
#include "daemon/node/files.h"
#include "daemon/node/image_archives.h"
#include "daemon/node/image_collector.h"
#include "daemon/node/metrics.h"
#include "daemon/node/node_object.h"
#include "daemon/node/pod_table.h"
#include "daemon/node/probe/probes.h"
#include "daemon/node/static_pods.h"
#include "daemon/node/task_pool.h"
#include "daemon/node/volume/storage_limits.h"
#include "daemon/node/volume/volume_archives.h"
#include "daemon/node/volume/volume_use.h"
#include "daemon/node/volume/volume_watch.h"
#include "daemon/node/worker.h"
#include "daemon/queue/work_queue.h"
#include "daemon/stream/stream.h"
#include "daemon/volume/local/provisioner.h"
#include "runtime/runtime.h"
#include "store/client/client.h"

namespace coracle::node {

constexpr std::chrono::seconds kTasksEndWithin{10};  // of systemd's TimeoutStopSec=

// Dependencies of the agent. All outlive it.
struct AgentSeams {
  Client& client;
  Informer& pods;  // of this node, or of all nodes: the agent ignores the others
  Informer& config_maps;
  Informer& secrets;
  Informer& services;
  runtime::Runtime& runtime;
  EventSink& events;
  const Clock& clock = system_clock();
  // Executors for long work: image pulls, lifecycle hooks, directory walks and calls to file servers. Absent: the agent's own
  // threads.
  Executor pulls, hooks, walks;
  // Why a pod without running containers may not start yet; "" if it may. Thread-safe. Absent: every pod may start.
  std::function<std::string(const Object& pod)> held_back;
  std::function<void(std::chrono::nanoseconds)> pause;  // blocks while a rate is measured; absent: the agent waits itself
  // Whether the kernel drops the signal, as it does for PID 1 of a PID namespace without a handler. Absent: never.
  std::function<bool(int pid, int signal)> is_dropped;
  Informer* nodes = nullptr;  // of this node, or of all nodes. Absent: the node's labels and taints are not checked
  // PersistentVolumeClaims, PersistentVolumes and StorageClasses. If they are absent, pods with claims wait.
  Informer *claims = nullptr, *volumes = nullptr, *storage_classes = nullptr;
};

class Agent : public PodStreams, public NodeImages, public NodeVolumes {
 public:
  // Registers handlers with the informers, so construct it before they start.
  Agent(AgentConfig config, AgentSeams seams, PodNetworkHooks network);
  ~Agent() override;

  // Adopts the running sandboxes, then starts the threads; one of them waits for the informers. Errors: directories that cannot
  // be created.
  Result<void> start();
  void stop();  // pods keep running
  // Call after stop(), when nobody uses the agent any more. Ends the tasks in the background: pulls, hooks, what is done on disks
  // and with servers. Blocks for kTasksEndWithin at most. False: one of them hangs, and the destructor would wait for it.
  bool end_tasks();

  // The node shuts down: nothing starts any more, and running pods are terminated within `budget`. Pods keep their results; those
  // that may run again are started by the next daemon. May be called before start(). Does not block. Source: KEP-2000.
  struct EndBudget {
    std::chrono::seconds ordinary, critical;  // for all other pods first, then for the pods of the critical priority classes
  };
  void end_pods(EndBudget budget);
  // Call after end_pods() and start(). Blocks until no pod runs or the budget is over; each part of the budget gets 2 s more for
  // killed processes. `tick`, if any, is called about once a second. Returns the pods that still run, as "namespace/name".
  std::vector<std::string> wait_for_end(const std::function<void()>& tick = {});

  // Whether this daemon has seen the pod ready. A status from before its start does not count.
  bool ready(const std::string& uid) const { return start_order_.ready(uid); }
  // The wall clock was set: rewrites the times in the Node's status and in the Lease. Does not block.
  void clock_was_set() { node_object_.clock_was_set(); }
  // Checks `held_back` again for the held pods of the namespace. Does not block.
  void look_at_held(const std::string& ns);
  // Checks PodNetworkHooks::serves again for the pods that wait to be terminated. Does not block.
  void look_at_draining();
  // Attaches the pod of this sandbox to the network again after it lost its interface. Does not block.
  void look_at_network(const std::string& uid);

  // ---- PodStreams ----
  Result<void> logs(const LogRequest& request, const std::function<bool(std::string_view)>& out) override;
  Result<std::unique_ptr<ExecSession>> exec(const ExecRequest& request, ExecOutput& out) override;
  Result<Fd> connect(const Key& pod, uint16_t port, std::stop_token stop) override;

  // ---- NodeImages ----
  json::value list() override;
  Result<json::value> pull(const std::string& reference, const std::string& user, const std::string& password,
                           const std::function<void(const json::value&)>& progress) override;
  Result<json::value> import(const Fd& archive, const std::string& name) override;
  Result<void> write_archive(const std::vector<std::string>& references, const Fd& archive) override;
  Result<json::value> remove(const std::string& reference) override;
  Result<json::value> tag(const std::string& reference, const std::string& name) override;
  Result<json::value> prune(bool all) override;

  // ---- NodeVolumes ----
  Result<void> export_volume(const Key& claim, bool while_in_use, const Fd& archive) override;
  Result<json::value> import_volume(const Key& claim, bool replace, const Fd& archive) override;

  // The threads' steps, one at a time on the caller's thread, for tests: adopt first, then work_once for each pod that is due.
  Result<void> adopt();
  void sweep();  // once, after the informers have synced: terminates the sandboxes of pods that no longer exist
  void read_manifests();
  bool work_once();
  void look_at_storage();  // call every kStorageLook
  Probes& probes() { return probes_; }
  Metrics& metrics() { return metrics_; }  // usage of this machine and its pods
  std::vector<VolumeUse> volumes();        // usage of the claims' volumes. Blocks for disk I/O

 private:
  void on_pod(const Informer::Change& change);
  void on_source(const Kind& kind, const Key& key);
  void on_sandbox(const std::string& uid);
  void tell(const Probes::Warning& warning);
  void images_changed();
  void prepare_log_links();
  void hear_storage();
  bool holds_volumes(const std::string& root) const;
  volume::StorageObjects storage() const;
  Result<Outcome> reconcile(const Key& key);
  void run(std::stop_token stop);
  void wait_for(std::chrono::nanoseconds span);
  std::optional<SteadyTime> ends_by(const json::value& pod) const;
  std::vector<std::string> wait_for_end_of(bool critical, const std::function<void()>& tick);
  json::object allocatable() const;

  // The target of a stream: the pod in the API, and its sandbox.
  struct StreamTarget {
    ObjectPtr pod;    // the pod that runs
    ObjectPtr shown;  // the pod as the API shows it: for a static pod its mirror
    std::string uid;  // uid of the pod that runs
  };
  Result<StreamTarget> stream_target(const Key& pod) const;
  Result<std::string> stream_container(const StreamTarget& target, const std::string& wanted) const;

  struct Followers {  // log readers that follow; woken when their sandbox changes
    std::multimap<std::string, files::DirectoryWatch*> by_uid;
  };

  // Wraps a handler for the informers and the runtime, which outlive this agent: `hear` is called while the agent exists, later
  // not.
  auto while_alive() {
    return [self = self_](auto&& hear) {
      self->with([&](Agent* agent) {
        if (agent) hear(*agent);
      });
    };
  }

  std::shared_ptr<Guarded<Agent*>> self_ = std::make_shared<Guarded<Agent*>>(this);  // null after destruction
  AgentConfig config_;
  AgentSeams seams_;
  PodNetworkHooks network_;
  PodTable table_;
  WorkQueue queue_;
  EventRecorder recorder_;
  Actions actions_;
  Probes probes_;
  Guarded<Followers> followers_;
  NodeObject node_object_;
  StartOrder start_order_;
  Guarded<std::set<std::string>> draining_;
  struct End {  // shutdown of the node
    EndBudget budget;
    SteadyTime ordinary_by;
    std::optional<SteadyTime> critical_by;  // set when the turn of the critical pods begins
  };
  Guarded<std::optional<End>> end_;
  Guarded<WantingImages> wanting_images_;
  PodWorker worker_;
  volume::DiskDirectories directories_;
  StaticPods static_pods_;
  StorageLimits storage_limits_;
  ImageCollector image_collector_;
  std::optional<ImageArchives> image_archives_;
  std::stop_source stop_;
  Metrics metrics_;
  std::optional<volume::Provisioner> provisioner_;
  std::optional<VolumeArchives> archives_;
  std::optional<VolumeWatch> volume_watch_;
  TaskPool pulls_, hooks_, walks_, deletions_, copies_, removals_, servers_;  // their tasks use the members above
  std::vector<std::jthread> threads_;
};

}  // namespace coracle::node
