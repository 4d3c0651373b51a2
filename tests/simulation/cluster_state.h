// SPDX-License-Identifier: Apache-2.0
// ClusterState: the current objects, change by change; the earlier states that the daemon may still assume; and the rules about
// them. The rules are checked after every single change (safety), and when nothing moves any more (convergence).
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
  virtual void after_power_loss(const ClusterState&) {}  // soft writes may be lost
  virtual void at_rest(const ClusterState&) {}
};

class ClusterState {
 public:
  ClusterState(Cluster& cluster, const Clock& clock);
  void add(std::unique_ptr<Rule> rule) { rules_.push_back(std::move(rule)); }
  void set_daemon(const UnreliableClient* daemon) { daemon_ = daemon, daemons_ += daemon != nullptr; }
  void look_anew();                              // after a power failure of the cluster
  void hear(Actor actor, const Change& change);  // after the daemon's watches got it
  void check_at_rest();

  const Clock& clock;

  // ---- the current objects ----
  ObjectPtr find(const Kind& kind, const Key& key) const;  // null if absent
  std::vector<ObjectPtr> all(const Kind& kind, std::string_view ns = {}) const;
  std::vector<ObjectPtr> everything() const;
  std::vector<ObjectPtr> controlled(const Kind& kind, const Object& owner) const;  // by uid, in the same namespace
  // The states that the daemon may take for the latest one: newest first; the last one is that of its cache.
  std::vector<ObjectPtr> believable(const Kind& kind, const Key& key) const;
  // The same for its controller, if that is of this kind. Empty if it has none, or if the daemon has seen that it is gone.
  std::vector<ObjectPtr> believable_owner(const Kind& kind, const Object& owned) const;
  // The same for the only part of the daemon that writes the object's spec: it remembers its own writes, whatever its cache
  // shows.
  std::vector<ObjectPtr> believable_to_writer(const Kind& kind, const Key& key) const;
  // The object's believable states if the daemon cannot assume that it is absent; otherwise empty.
  std::vector<ObjectPtr> certain(const Kind& kind, const Key& key) const;
  // The same for all objects of a kind, in one namespace or in all, in any order, including deleted ones that the daemon may
  // still assume.
  std::vector<ObjectPtr> believable_in(const Kind& kind, std::string_view ns) const;
  bool daemon_heard_of(Revision update) const { return daemon_ && daemon_->heard_of(update); }
  int daemons() const { return daemons_; }     // number of daemons so far; each starts without the memory of the one before
  std::vector<ObjectPtr> pod_metrics() const;  // as currently measured
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
      Revision until;     // the revision that ended this state …
      bool daemon_asked;  // … because the daemon changed the spec
    };
    ObjectPtr now;                // null: deleted
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

// ---- pods, with Kubernetes' definitions ----
bool finished(const Object& pod);  // Succeeded or Failed
bool active(const Object& pod);    // neither finished nor terminating
bool ready(const Object& pod);
std::string describe(const Object& object);  // "pods default/web-1"

// ---- common to many kinds ----
// The "status" or "reason" of the condition of this type; "" if there is none.
std::string_view condition(const Object& object, std::string_view type, std::string_view part);
bool has_condition(const Object& object, std::string_view type);  // its status is True
// A number itself; of a percentage, that part of `total`. Like GetScaledValueFromIntOrPercent of Kubernetes.
int64_t scaled_value(const json::value& int_or_percent, int64_t total, bool round_up);

// The rules by topic. Each file states what Kubernetes guarantees, and where the guarantee is weaker.
std::unique_ptr<Rule> replicas_rule();  // ReplicaSet, ReplicationController
std::unique_ptr<Rule> rollout_rule();   // Deployment
std::unique_ptr<Rule> stateful_sets_rule();
std::unique_ptr<Rule> daemon_sets_rule();
std::unique_ptr<Rule> jobs_rule();  // Job, TTL-after-finished
std::unique_ptr<Rule> autoscalers_rule();
std::unique_ptr<Rule> cron_jobs_rule();                // CronJob
std::unique_ptr<Rule> nodes_rule();                    // node lifecycle, taint eviction, pods of deleted nodes
std::unique_ptr<Rule> placement_rule();                // the scheduler
std::unique_ptr<Rule> preemption_rule();               // the scheduler, for pods with priorities
std::unique_ptr<Rule> budget_rule();                   // PodDisruptionBudget, ResourceQuota
std::unique_ptr<Rule> service_rule();                  // EndpointSlice, Endpoints
std::unique_ptr<Rule> volumes_rule(const Disk& disk);  // PersistentVolumeClaim, PersistentVolume
std::unique_ptr<Rule> ownership_rule();                // garbage collection, finalizers, namespaces

}  // namespace coracle::simulation
