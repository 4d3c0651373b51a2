// SPDX-License-Identifier: Apache-2.0
// Agent: the node agent, Kubernetes' kubelet for this one machine. It sees the pods bound to its node through the informer,
// brings them up through the runtime, and reports what came of them through the Client; it knows neither API nor store.
//   informers, manifests, runtime.on_change ──▶ queue of uids ──▶ workers ──▶ PodWorker (look, plan, do, tell)
// Threads: `workers` for pods; a few for probes, pulls and hooks while there are such; one for the node object and, with a
// manifests directory, one for static pods. A daemon that starts finds its pods' sandboxes and adopts them.
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
#include "daemon/node/metrics.h"
#include "daemon/node/node_object.h"
#include "daemon/node/pod_table.h"
#include "daemon/node/probes.h"
#include "daemon/node/static_pods.h"
#include "daemon/node/storage_limits.h"
#include "daemon/node/task_pool.h"
#include "daemon/node/volume_archives.h"
#include "daemon/node/volume_use.h"
#include "daemon/node/volume_watch.h"
#include "daemon/node/worker.h"
#include "daemon/queue/work_queue.h"
#include "daemon/stream/stream.h"
#include "daemon/volume/local/provisioner.h"
#include "runtime/runtime.h"
#include "store/client/client.h"

namespace coracle::node {

// What the agent reads and writes. All outlive it.
struct AgentSeams {
  Client& client;
  Informer& pods;  // of this node, or all: others are left alone
  Informer& config_maps;
  Informer& secrets;
  Informer& services;
  runtime::Runtime& runtime;
  EventSink& events;
  const Clock& clock = system_clock();
  Executor pulls, hooks, walks;  // where long work runs, that with servers among walks; absent: on threads of the agent's own
  // What a pod that nothing runs of waits for before it may begin, "" when it may. Thread-safe. Absent: nothing ever.
  std::function<std::string(const Object& pod)> held_back;
  std::function<void(std::chrono::nanoseconds)> pause;  // while a rate is measured; absent: the caller waits
  // Whether the kernel drops a signal for a process that knows nothing of it. Absent: never.
  std::function<bool(int pid, int signal)> is_dropped;
  Informer* nodes = nullptr;  // of this node, or all. Absent: its labels and taints are not looked at
  // PersistentVolumeClaims, PersistentVolumes and StorageClasses. Absent, all three: pods with claims wait.
  Informer *claims = nullptr, *volumes = nullptr, *storage_classes = nullptr;
};

class Agent : public PodStreams, public NodeImages, public NodeVolumes {
 public:
  // Registers its handlers with the informers: before they are started.
  Agent(AgentConfig config, AgentSeams seams, PodNetworkHooks network);
  ~Agent() override;

  // Begins. Adopts what runs, then waits for the informers on a thread of its own. Errors: directories that cannot be made.
  Result<void> start();
  void stop();  // pods go on

  // The node ends: from now on nothing is started, and what runs ends by its own rules, in `budget`. Pods keep what came of them,
  // and those that may run again do so with the next agent. Does not block. Before start(), too. Source: KEP-2000.
  struct EndBudget {
    std::chrono::seconds ordinary, critical;  // first all pods but those of the critical priority classes, then these
  };
  void end_pods(EndBudget budget);
  // After end_pods() and start(): blocks until nothing runs, or the budget is over. `tick`, if any, is called every second or so.
  // Returns the pods that still run, "namespace/name".
  std::vector<std::string> wait_for_end(const std::function<void()>& tick = {});

  // Whether a pod of this node is ready, as far as this daemon has seen it: not what a status from before it says.
  bool ready(const std::string& uid) const { return start_order_.ready(uid); }
  // The wall clock is not what it was: what the node tells the time by is told anew. Does not block.
  void clock_was_set() { node_object_.clock_was_set(); }
  // Asks held_back again about those of the namespace that are. Does not block.
  void look_at_held(const std::string& ns);
  // Asks PodNetworkHooks::serves again about those that are to end. Does not block.
  void look_at_draining();
  // Attaches the pod of this sandbox again, whose link is gone. Does not block.
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

  // The steps of a thread, one at a time on the caller's, for tests: adopt, then a look at each pod that is due.
  Result<void> adopt();
  void sweep();  // once, when the informers are level: sandboxes of pods that nobody wants any more end
  void read_manifests();
  bool work_once();
  void look_at_storage();  // every kStorageLook
  Probes& probes() { return probes_; }
  Metrics& metrics() { return metrics_; }  // what this machine and its pods use
  std::vector<VolumeUse> volumes();        // how full those of claims are. Blocks for the disks

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

  // What a stream is about: the pod as the API knows it, and its sandbox.
  struct StreamTarget {
    ObjectPtr pod;    // what runs
    ObjectPtr shown;  // how the API shows it
    std::string uid;  // of what runs
  };
  Result<StreamTarget> stream_target(const Key& pod) const;
  Result<std::string> stream_container(const StreamTarget& target, const std::string& wanted) const;

  struct Followers {  // of logs, woken when their sandbox changes
    std::multimap<std::string, files::DirectoryWatch*> by_uid;
  };

  // What informers and the runtime call on a change: `hear` on this agent, or nothing once it has ended, since they outlive it.
  auto while_alive() {
    return [self = self_](auto&& hear) {
      self->with([&](Agent* agent) {
        if (agent) hear(*agent);
      });
    };
  }

  std::shared_ptr<Guarded<Agent*>> self_ = std::make_shared<Guarded<Agent*>>(this);  // null once it has ended
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
  struct End {  // of the node
    EndBudget budget;
    SteadyTime ordinary_by;
    std::optional<SteadyTime> critical_by;  // once it is their turn
  };
  Guarded<std::optional<End>> end_;
  Guarded<WantingImages> wanting_images_;
  PodWorker worker_;
  volume::DiskDirectories directories_;
  StaticPods static_pods_;
  StorageLimits storage_limits_;
  std::stop_source stop_;
  Metrics metrics_;
  std::optional<volume::Provisioner> provisioner_;
  std::optional<VolumeArchives> archives_;
  std::optional<VolumeWatch> volume_watch_;
  TaskPool pulls_, hooks_, walks_, clearing_, removals_, servers_;  // their tasks reach what stands above
  std::vector<std::jthread> threads_;
};

}  // namespace coracle::node
