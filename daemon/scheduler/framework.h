// SPDX-License-Identifier: Apache-2.0
// The framework: how one pod's place is found. Plugins, each a rule of its own, are asked at Kubernetes' extension points in
// Kubernetes' order:
//   PreEnqueue ─▶ [queue, QueueSort] ─▶ PreFilter ─▶ Filter each node ─▶ PreScore ─▶ Score ▸ NormalizeScore ▸ × weight ─▶ the
//   best
//        └ gated                             no node is left ─▶ PostFilter (preemption)      Reserve ▸ PreBind ▸ Bind ◀─┘
// All of it is pure: pod + cluster → decision. What is to be written (a binding, victims, claims) is part of the decision; the
// scheduler writes it. Source: Kubernetes "Scheduling Framework", kube-scheduler framework interfaces.
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
  skip,           // PreFilter, PreScore: the plugin has nothing to say about this pod
  unschedulable,  // not now; fewer pods on the node could change it
  unresolvable,   // not as the node and the pod are
};

// Why not. `text` is Kubernetes' wording, which scripts look for; the rest is for people.
struct Reason {
  std::string text;
  std::string figures;  // "cpu requested 2, free 500m of 1"; may be ""
  std::string cure;     // "1500m more cpu"; may be ""
};
using Reasons = std::vector<Reason>;

// What happened in the cluster, as far as it could help a pod that no node fits: the events of Kubernetes' queueing hints.
struct ClusterEvent {
  enum What : uint32_t {
    node_added = 1 << 0,
    node_allocatable = 1 << 1,
    node_labels = 1 << 2,
    node_taints = 1 << 3,  // spec.unschedulable too
    node_removed = 1 << 4,
    pod_placed = 1 << 5,
    pod_labels = 1 << 6,  // of a placed one
    pod_shrunk = 1 << 7,  // a placed one asks for less
    pod_removed = 1 << 8,
    claims = 1 << 9,    // PersistentVolumeClaims
    volumes = 1 << 10,  // PersistentVolumes
    classes = 1 << 11,  // StorageClasses
    csi_nodes = 1 << 12,
    namespaces = 1 << 13,  // their labels
  };
  uint32_t what = 0;
  const NodeInfo* node = nullptr;  // of node_*, as it is now; null for node_removed
  const PodInfo* pod = nullptr;    // of pod_*
  bool is(uint32_t any) const { return what & any; }
  // Whether the pod of pod_* has one of those claims. Its own are sorted by the first who asks: all parked pods do.
  bool has_any_claim(const std::vector<std::string>& names) const;

  mutable std::optional<std::set<std::string_view>> claim_names = {};  // of the pod
};

class Plugin;
class Framework;

// One decision under way.
struct Cycle {
  Cycle(PodInfoPtr pod, Cluster& cluster, const Lister& lister)
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
  std::vector<const Plugin*> filters;            // who has something to say about this pod, in order; since PreFilter
  std::optional<std::vector<std::string>> only;  // PreFilter knows that no other nodes will do
  std::string only_because;                      // the plugins that said so, as Kubernetes lists them
};

struct NodeScore {
  const NodeInfo* node = nullptr;
  int64_t score = 0;
};

// What Reserve and PreBind want written before the pod is bound. Merge patches.
struct Write {
  const Kind* kind = nullptr;
  Key key;
  json::value patch;
};

// Pods that wait for their victims to leave a node: by node.
using Nominations = std::map<std::string, std::vector<PodInfoPtr>>;

// What PostFilter found for a pod that fits no node.
struct Rescue {
  std::string node;  // where it will fit once the victims are gone; "": nowhere
  std::vector<PodInfoPtr> victims;
  std::string message;   // why nowhere
  bool eligible = true;  // false: it may not ask, or has asked already
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

  // Whether the pod may wait for a node at all.
  virtual Answer pre_enqueue(const PodInfo&, Reasons&) const { return Answer::success; }
  // Whether `a` is decided before `b`.
  virtual bool sorts_before(const PodInfo&, const PodInfo&) const { return false; }
  // Once for the pod, before its nodes. `skip`: filter() need not be asked.
  virtual Answer pre_filter(Cycle&, Reasons&) const { return Answer::success; }
  // `why` may be null: then only the verdict counts, and it has to be quick.
  virtual Answer filter(const Cycle&, const NodeInfo&, Reasons*) const { return Answer::success; }
  // For a pod that no node fits, with each node's verdict. Source: Kubernetes "Pod Priority and Preemption".
  virtual Rescue post_filter(const Framework&, Cycle&, const Nominations&,
                             const std::vector<std::pair<const NodeInfo*, Answer>>&) const {
    return {};
  }
  // Once for the pod, with the nodes that it fits. `skip`: it scores all of them 0.
  virtual Answer pre_score(Cycle&, const std::vector<const NodeInfo*>&) const { return Answer::success; }
  virtual void score(const Cycle&, std::vector<NodeScore>&) const {}  // of all those nodes
  virtual void normalize(const Cycle&, std::vector<NodeScore>&) const {}
  // Reserve and PreBind: what has to be written for the pod to stand on that node.
  virtual std::vector<Write> before_bind(const Cycle&, const NodeInfo&) const { return {}; }
  // Bind: the body of the binding.
  virtual json::value binding(const PodInfo&, const std::string&) const { return nullptr; }
  // Whether the event could help a pod that this plugin turned away.
  virtual bool could_help(const ClusterEvent&, const PodInfo&, Cluster&) const { return true; }

  size_t index = 0;  // in its profile
};

template <typename Score>
void score_each(std::vector<NodeScore>& scores, Score&& score) {  // score(const NodeInfo&)
  for (NodeScore& one : scores) one.score = score(*one.node);
}
// NormalizeScore as most plugins do it: the largest becomes 100, the others in proportion; `reverse`: the smallest is best.
void normalize_to_max(std::vector<NodeScore>& scores, bool reverse);

// The plugins of one profile, and who is asked at which extension point, in which order.
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
  const Plugin* plugin = nullptr;  // who refused first
  Reasons reasons;
};

class Framework {
 public:
  Framework(std::string scheduler_name, PluginLists lists, int percentage_of_nodes_to_score);

  const std::string& scheduler_name() const { return scheduler_name_; }
  bool could_help(const PluginSet& refused, const ClusterEvent& event, const PodInfo& pod, Cluster& cluster) const;
  // Success, or who keeps it from waiting for a node.
  Verdict pre_enqueue(const PodInfo& pod) const;
  bool sorts_before(const PodInfo& a, const PodInfo& b) const;

  struct Placement {
    const NodeInfo* node = nullptr;  // null: none fits
    Reason refused;                  // PreFilter refused the pod as such
    Answer refused_code = Answer::success;
    PluginSet refused_by;
  };
  // The best of the nodes that fit. `start` rotates, so that not always the same ones are looked at in a large cluster.
  Placement place(Cycle& cycle, const Nominations& nominations, size_t& start) const;

  // ---- the parts, for preemption, for explaining, and for tests ----

  // Answer::success, or what PreFilter says against the pod as such.
  Verdict pre_filter(Cycle& cycle) const;
  Answer filter(const Cycle& cycle, const NodeInfo& node) const;
  // As filter, with the reasons of the first that refuses, or of all.
  Verdict why_not(const Cycle& cycle, const NodeInfo& node) const;
  // With the pods nominated to that node that are at least as important, and without them.
  Verdict why_not(const Cycle& cycle, const NodeInfo& node, const Nominations& nominations) const;
  bool fits(const Cycle& cycle, const NodeInfo& node, const Nominations& nominations) const;

  struct PluginScore {
    const Plugin* plugin;
    int64_t weight;
    std::vector<int64_t> raw, normalized;  // as the nodes
  };
  std::vector<PluginScore> score(Cycle& cycle, const std::vector<const NodeInfo*>& nodes) const;
  const std::vector<const Plugin*>& filters() const { return filters_; }
  const Plugin* post_filter() const { return post_filter_; }
  std::vector<Write> before_bind(const Cycle& cycle, const NodeInfo& node) const;
  json::value binding(const PodInfo& pod, const std::string& node) const;
  // How many fitting nodes are enough.
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
