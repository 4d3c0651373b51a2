// SPDX-License-Identifier: Apache-2.0
// The scheduling framework: how the node of one pod is found. Plugins, each with one rule, are called at Kubernetes' extension
// points in Kubernetes' order:
//   PreEnqueue ─▶ [queue, QueueSort] ─▶ PreFilter ─▶ Filter ─▶ PreScore ─▶ Score ▸ NormalizeScore ▸ × weight ─▶ best node
//        └ gated                         no node is left ─▶ PostFilter (preemption)                                  │
//                                                                                    Reserve ▸ PreBind ▸ Bind ◀─────┘
// All of it is pure: pod + cluster → decision. The writes (a binding, victims, claims) are part of the decision; the scheduler
// executes them. Source: Kubernetes "Scheduling Framework", kube-scheduler framework interfaces.
#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/scheduler/cluster.h"
#include "daemon/scheduler/lister.h"
#include "store/object/object.h"

namespace coracle::scheduler {

constexpr int64_t kNodeScoreMax = 100;
constexpr size_t kPluginsMax = 32;
using PluginSet = std::bitset<kPluginsMax>;  // by index in the profile

enum class Answer : uint8_t {
  success,
  skip,           // PreFilter, PreScore: the plugin does not apply to this pod
  unschedulable,  // not now; it could change when pods leave the node
  unresolvable,   // not unless the node or the pod changes
};

// Why a node or pod is rejected. `text` is Kubernetes' text, which scripts look for; the rest is for people.
struct Reason {
  std::string text;
  std::string figures;  // "cpu requested 2, free 500m of 1"; may be ""
  std::string cure;     // "1500m more cpu"; may be ""
};
using Reasons = std::vector<Reason>;

// A change in the cluster that could make an unschedulable pod schedulable: the events of Kubernetes' queueing hints.
struct ClusterEvent {
  enum What : uint32_t {
    node_added = 1 << 0,
    node_allocatable = 1 << 1,
    node_labels = 1 << 2,
    node_taints = 1 << 3,  // and spec.unschedulable
    node_removed = 1 << 4,
    pod_placed = 1 << 5,
    pod_labels = 1 << 6,  // of a placed pod
    pod_shrunk = 1 << 7,  // a placed pod requests less
    pod_removed = 1 << 8,
    claims = 1 << 9,    // PersistentVolumeClaims
    volumes = 1 << 10,  // PersistentVolumes
    classes = 1 << 11,  // StorageClasses
    csi_nodes = 1 << 12,
    namespaces = 1 << 13,  // their labels
    csi_drivers = 1 << 14,
    capacities = 1 << 15,  // CSIStorageCapacities
  };
  uint32_t what = 0;
  const NodeInfo* node = nullptr;  // for node_*, in its current state; null for node_removed
  const PodInfo* pod = nullptr;    // for pod_*
  bool is(uint32_t any) const { return what & any; }
  // Whether the pod of pod_* has one of those claims. Its own claims are sorted on first use, because the check runs for every
  // parked pod.
  bool has_any_claim(const std::vector<std::string>& names) const;

  mutable std::optional<std::set<std::string_view>> claim_names = {};  // of the pod
};

class Plugin;
class Framework;

// The state of one scheduling cycle.
struct CycleState {
  CycleState(PodInfoPtr pod, Cluster& cluster, const Lister& lister)
      : info(std::move(pod)), object(info->object->awake()), pod(*object), cluster(cluster), lister(lister) {}
  struct State {
    virtual ~State() = default;
  };
  PodInfoPtr info;
  ObjectPtr object;
  view::Pod pod;
  Cluster& cluster;
  const Lister& lister;
  std::unique_ptr<State> filter_state[kPluginsMax], score_state[kPluginsMax];
  std::vector<const Plugin*> filters;            // the filters that apply to this pod, in order; set by PreFilter
  std::optional<std::vector<std::string>> only;  // PreFilter restricts the pod to these nodes
  std::string only_because;                      // the plugins that restricted it, as Kubernetes lists them
};

struct NodeScore {
  const NodeInfo* node = nullptr;
  int64_t score = 0;
};

// A write that Reserve or PreBind needs before the pod is bound: a merge patch.
struct Write {
  const Kind* kind = nullptr;
  Key key;
  json::value patch;
  bool is_repeated = false;  // as UpdateOptions'
};

// Nominated pods, which wait for their victims to end: by node.
using Nominations = std::map<std::string, std::vector<PodInfoPtr>>;

// The result of PostFilter for a pod that fits no node.
struct PostFilterResult {
  std::string node;  // where it will fit after the victims have ended; "": nowhere
  std::vector<PodInfoPtr> victims;
  std::string message;   // why it fits nowhere
  bool eligible = true;  // false: the pod may not preempt, or has preempted already
};

class Plugin {
 public:
  enum Point : uint32_t {
    pre_enqueue_point = 1 << 0,
    queue_sort_point = 1 << 1,
    pre_filter_point = 1 << 2,
    filter_point = 1 << 3,
    post_filter_point = 1 << 4,
    pre_score_point = 1 << 5,
    score_point = 1 << 6,
    reserve_point = 1 << 7,
    permit_point = 1 << 8,
    pre_bind_point = 1 << 9,
    bind_point = 1 << 10,
    post_bind_point = 1 << 11,
  };

  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  virtual uint32_t points() const = 0;

  // Whether the pod may be queued.
  virtual Answer pre_enqueue(const PodInfo&, Reasons&) const { return Answer::success; }
  // Whether `a` is scheduled before `b`.
  virtual bool sorts_before(const PodInfo&, const PodInfo&) const { return false; }
  // Called once per pod, before its nodes. `skip`: filter() is not called.
  virtual Answer pre_filter(CycleState&, Reasons&) const { return Answer::success; }
  // `why` may be null: then only the verdict is needed, and fast.
  virtual Answer filter(const CycleState&, const NodeInfo&, Reasons*) const { return Answer::success; }
  // Called for a pod that fits no node, with each node's verdict. Source: Kubernetes "Pod Priority and Preemption".
  virtual PostFilterResult post_filter(const Framework&, CycleState&, const Nominations&,
                                       const std::vector<std::pair<const NodeInfo*, Answer>>&) const {
    return {};
  }
  // Called once per pod, with the nodes that fit. `skip`: all scores are 0.
  virtual Answer pre_score(CycleState&, const std::vector<const NodeInfo*>&) const { return Answer::success; }
  virtual void score(const CycleState&, std::vector<NodeScore>&) const {}  // of all those nodes
  virtual void normalize(const CycleState&, std::vector<NodeScore>&) const {}
  // Reserve and PreBind: the writes that are necessary before the pod runs on that node.
  virtual std::vector<Write> before_bind(const CycleState&, const NodeInfo&) const { return {}; }
  // Bind: the body of the binding.
  virtual json::value binding(const PodInfo&, const std::string&) const { return nullptr; }
  // Whether the event could help a pod that this plugin rejected.
  virtual bool could_help(const ClusterEvent&, const PodInfo&, Cluster&) const { return true; }

  size_t index = 0;  // in its profile
};

template <typename Score>
void score_each(std::vector<NodeScore>& scores, Score&& score) {  // score(const NodeInfo&)
  for (NodeScore& one : scores) one.score = score(*one.node);
}
// The usual NormalizeScore: the largest score becomes 100, the others in proportion; `reverse`: the smallest is best.
void normalize_to_max(std::vector<NodeScore>& scores, bool reverse);

// The plugins of one profile, and which ones are called at each extension point, in order.
struct PluginLists {
  struct Enabled {
    size_t plugin;  // index in `plugins`
    int64_t weight = 1;
  };
  std::vector<std::unique_ptr<Plugin>> plugins;  // at most kPluginsMax
  std::map<Plugin::Point, std::vector<Enabled>> at;
};

struct Verdict {
  Answer code = Answer::success;
  const Plugin* plugin = nullptr;  // the first that rejected
  Reasons reasons;
};

class Framework {
 public:
  Framework(std::string scheduler_name, PluginLists lists, int percentage_of_nodes_to_score);

  const std::string& scheduler_name() const { return scheduler_name_; }
  bool could_help(const PluginSet& refused, const ClusterEvent& event, const PodInfo& pod, Cluster& cluster) const;
  // Success, or the plugin that keeps the pod out of the queue.
  Verdict pre_enqueue(const PodInfo& pod) const;
  bool sorts_before(const PodInfo& a, const PodInfo& b) const;

  struct Placement {
    const NodeInfo* node = nullptr;  // null: no node fits
    Reason refused;                  // set if PreFilter rejected the pod
    Answer refused_code = Answer::success;
    PluginSet refused_by;
  };
  // The best node that fits. `start` rotates, so that a large cluster's nodes are considered in turn.
  Placement place(CycleState& cycle, const Nominations& nominations, size_t& start) const;

  // ---- parts, for preemption, explain() and tests ----

  // Answer::success, or PreFilter's rejection of the pod.
  Verdict pre_filter(CycleState& cycle) const;
  Answer filter(const CycleState& cycle, const NodeInfo& node) const;
  // As filter, with the reasons of the first plugin that rejects, or of all.
  Verdict why_not(const CycleState& cycle, const NodeInfo& node) const;
  // The same, with and without the pods that are nominated to that node and have at least the same priority.
  Verdict why_not(const CycleState& cycle, const NodeInfo& node, const Nominations& nominations) const;
  bool fits(const CycleState& cycle, const NodeInfo& node, const Nominations& nominations) const;

  struct PluginScore {
    const Plugin* plugin;
    int64_t weight;
    std::vector<int64_t> raw, normalized;  // in the order of the nodes
  };
  std::vector<PluginScore> score(CycleState& cycle, const std::vector<const NodeInfo*>& nodes) const;
  const std::vector<const Plugin*>& filters() const { return filters_; }
  const Plugin* post_filter() const { return post_filter_; }
  std::vector<Write> before_bind(const CycleState& cycle, const NodeInfo& node) const;
  json::value binding(const PodInfo& pod, const std::string& node) const;
  // How many fitting nodes to find before scoring.
  size_t enough(size_t nodes) const;

 private:
  struct Scorer {
    const Plugin* plugin;
    int64_t weight;
    bool prepares;
  };
  std::string scheduler_name_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  int percentage_;
  std::vector<const Plugin*> pre_enqueue_, pre_filters_, filters_, before_bind_;
  std::vector<Scorer> scorers_;
  const Plugin* queue_sort_ = nullptr;
  const Plugin* post_filter_ = nullptr;
  const Plugin* bind_ = nullptr;
};

}  // namespace coracle::scheduler
