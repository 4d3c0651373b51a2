// SPDX-License-Identifier: Apache-2.0
// ClusterState: what there is, as it was written, change by change; what there was, as far as the daemon may still believe in it;
// and the rules that hold over it. A rule is asked after every single change (safety), and when all has come to rest
// (convergence).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/client.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/disk.h"

namespace coracle::simulation {

class ClusterState;

class Rule {
 public:
  virtual ~Rule() = default;
  virtual void after(const ClusterState&, Actor, const Change&) {}
  virtual void after_power_loss(const ClusterState&) {}  // what was written softly may be forgotten
  virtual void at_rest(const ClusterState&) {}
};

class ClusterState {
 public:
  ClusterState(Cluster& cluster, const Clock& clock);
  void add(std::unique_ptr<Rule> rule) { rules_.push_back(std::move(rule)); }
  void set_daemon(const UnreliableClient* daemon) { daemon_ = daemon, daemons_ += daemon != nullptr; }
  void look_anew();                              // after the cluster has lost power
  void hear(Actor actor, const Change& change);  // after the daemon's watches have
  void check_at_rest();

  const Clock& clock;

  // ---- what there is ----
  ObjectPtr find(const Kind& kind, const Key& key) const;  // null when absent
  std::vector<ObjectPtr> all(const Kind& kind, std::string_view ns = {}) const;
  std::vector<ObjectPtr> everything() const;
  std::vector<ObjectPtr> controlled(const Kind& kind, const Object& owner) const;  // by uid, in the same namespace
  // What the daemon may take for the latest state of it: newest first, the last one is what its cache has.
  std::vector<ObjectPtr> believable(const Kind& kind, const Key& key) const;
  // Those of its controller, if that is of this kind; none: it has none such, or the daemon knows that it is gone.
  std::vector<ObjectPtr> believable_owner(const Kind& kind, const Object& owned) const;
  // The same for whoever alone of the daemon writes its spec: that one knows its own writes, whatever its cache shows.
  std::vector<ObjectPtr> believable_to_writer(const Kind& kind, const Key& key) const;
  // The same, when it is there and the daemon can believe nothing else; none otherwise.
  std::vector<ObjectPtr> certain(const Kind& kind, const Key& key) const;
  // The same of all that is of a kind, in a namespace or in all, in any order, and what is gone but may be believed to be there.
  std::vector<ObjectPtr> believable_in(const Kind& kind, std::string_view ns) const;
  bool daemon_heard_of(Revision update) const { return daemon_ && daemon_->heard_of(update); }
  int daemons() const { return daemons_; }     // that there have been; each forgets what the one before it remembered
  std::vector<ObjectPtr> pod_metrics() const;  // as they are measured now
  bool daemon_unaware_of(const Object& pod) const { return daemon_ && daemon_->unaware_of(pod); }
  bool daemon_could_not_tell(const Object& pod) const { return daemon_ && daemon_->could_not_tell(pod.key()); }
  bool daemon_unaware_of_removal(const Object& pod) const { return daemon_ && daemon_->unaware_of_removal(pod); }

  void violated(const std::string& rule) const;
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  using Name = std::pair<std::string_view, std::string_view>;
  struct Story {
    struct Former {
      ObjectPtr object;
      Revision until;     // it ceased to be so …
      bool daemon_asked;  // … because the daemon changed its spec
    };
    ObjectPtr now;                // null: it is gone
    std::deque<Former> formerly;  // newest first
  };
  using Table = std::map<Key, Story>;
  const Table* table(const Kind& kind) const;
  std::vector<ObjectPtr> versions(const Kind& kind, const Key& key, bool to_writer) const;

  Cluster& cluster_;
  const UnreliableClient* daemon_ = nullptr;
  int daemons_ = 0;
  std::map<Name, Table> tables_;
  std::vector<std::unique_ptr<Rule>> rules_;
  mutable std::vector<std::string> violations_;
};

// ---- pods, as Kubernetes counts them ----
bool finished(const Object& pod);  // Succeeded or Failed
bool active(const Object& pod);    // neither finished nor being deleted
bool ready(const Object& pod);
std::string describe(const Object& object);  // "pods default/web-1"

// ---- what many kinds have ----
// The "status" or "reason" of the status' condition of that type; "" when there is none.
std::string_view condition(const Object& object, std::string_view type, std::string_view part);
bool has_condition(const Object& object, std::string_view type);  // its status is True
// Of a number itself; of a percentage, that part of `total`. Kubernetes' GetScaledValueFromIntOrPercent.
int64_t scaled_value(const json::value& int_or_percent, int64_t total, bool round_up);

// What is to hold, by what it is about. Each says in its file what Kubernetes promises, and where it promises less.
std::unique_ptr<Rule> replicas_rule();  // ReplicaSet, ReplicationController
std::unique_ptr<Rule> rollout_rule();   // Deployment
std::unique_ptr<Rule> stateful_sets_rule();
std::unique_ptr<Rule> daemon_sets_rule();
std::unique_ptr<Rule> jobs_rule();  // Job, TTL-after-finished
std::unique_ptr<Rule> autoscalers_rule();
std::unique_ptr<Rule> cron_jobs_rule();                // CronJob
std::unique_ptr<Rule> nodes_rule();                    // node lifecycle, taint eviction, pods of nodes that are gone
std::unique_ptr<Rule> placement_rule();                // the scheduler
std::unique_ptr<Rule> preemption_rule();               // the same, of pods with priorities
std::unique_ptr<Rule> budget_rule();                   // PodDisruptionBudget, ResourceQuota
std::unique_ptr<Rule> service_rule();                  // EndpointSlice, Endpoints
std::unique_ptr<Rule> volumes_rule(const Disk& disk);  // PersistentVolumeClaim, PersistentVolume
std::unique_ptr<Rule> ownership_rule();                // garbage collection, finalizers, namespaces

}  // namespace coracle::simulation
