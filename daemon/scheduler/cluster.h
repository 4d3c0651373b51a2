// SPDX-License-Identifier: Apache-2.0
// Cluster: the nodes, the pods on each, and sums over the pods. It is updated by single changes, so that a decision about one pod
// does not read all others. Not thread-safe: users that share it must lock it. Three kinds of sums are created on first use,
// updated from then on, and dropped when they have not been used for a while (kRememberedMax):
//   Topology    the domain ("zone" = "a") of each node
//   PodCounter  the number of pods on each node that match a selector: for the terms of the pod to be scheduled
//   NodeMemo    a result for each node: whether a node selector matches it, or how well a pod of a certain size fits
// One kind always exists, for the terms of existing pods:
//   HeldTerm    the number of pods on each node that have a certain affinity term
// Nodes have small numbers (slots), so that sums are plain arrays. Pods that are bound to a node that does not exist (yet) are in
// no sum, because a client may bind ten thousand pods to as many names.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/scheduler/pod_info.h"

namespace coracle::scheduler {

using Slot = uint32_t;
constexpr size_t kRememberedMax = 256;       // per kind of sum that is created on demand
constexpr size_t kMemoBytesMax = 16u << 20;  // of all TermMemos together, approximately: a pod may have 20,000 terms

struct NodeInfo {
  // The fields that are read for each node and pod come first, so that they share cache lines.
  Slot slot = 0;
  uint32_t taints = 0;  // Cluster::taints_of(); 0: none
  bool unschedulable = false;
  int64_t pods_max = 0;
  std::vector<PodInfoPtr> pods;  // unordered
  Amounts allocatable, requested;
  int64_t scored_cpu_milli = 0, scored_memory = 0;
  // The number of the cluster's change that last changed free resources or labels; never 0.
  uint64_t usage_since = 0, labels_since = 0;

  std::string name;
  RestingPtr node;
  json::object labels;
  std::vector<std::pair<std::string, int64_t>> images;  // name → bytes, sorted
};

struct Topology {
  std::vector<int32_t> domain;  // by slot; -1: the node lacks the label
  size_t domains = 0;           // all domain numbers are below it
  std::unordered_map<std::string, int32_t> numbers;
  uint64_t used = 0;
};

// A cache of whether a term matches the pods of a group, evaluated once per group. It covers groups with low numbers only.
class TermMemo {
 public:
  template <typename Answer>
  bool ask(uint32_t group, Answer&& answer) {
    if (known_.size() <= group) known_.resize(group + 1, 0);
    if (known_[group] == 0) known_[group] = answer() ? 2 : 1;
    return known_[group] == 2;
  }
  void forget(const std::vector<uint32_t>& groups) {  // sorted
    for (uint32_t group : groups) {
      if (group >= known_.size()) break;
      known_[group] = 0;
    }
  }

  size_t bytes() const { return known_.size(); }

 private:
  std::vector<uint8_t> known_;  // 0 unknown, 1 no, 2 yes
};

struct PodCounter {
  std::vector<int32_t> by_slot;

 private:
  friend class Cluster;
  std::vector<PodTerm> all_of;
  bool without_deleting = false;
  TermMemo memo;
  uint64_t used = 0;
};

enum class TermKind : uint8_t { affinity, anti_affinity, preferred, preferred_anti };

struct HeldTerm {
  PodTerm term;
  TermKind kind;
  std::vector<std::pair<Slot, int32_t>> holders;  // number of pods with the term, by node; sorted

 private:
  friend class Cluster;
  int64_t count = 0;
  TermMemo memo;
};

// A cache of the results of all nodes for one question. A result is valid while its subject is unchanged. Pods of one template
// share the questions.
class NodeMemo {
 public:
  // `since`: NodeInfo::usage_since or labels_since, depending on the subject of the question. `compute` is called if the cached
  // result is older.
  template <typename Compute>
  int64_t ask(const NodeInfo& node, uint64_t since, Compute&& compute) {
    if (known_.size() <= node.slot) known_.resize(node.slot + 1);
    Known& known = known_[node.slot];
    if (known.since != since) known = {since, compute()};
    return known.answer;
  }

 private:
  friend class Cluster;
  struct Known {
    uint64_t since = 0;
    int64_t answer = 0;
  };
  std::vector<Known> known_;
  uint64_t used_ = 0;
};

class Cluster {
 public:
  Cluster();
  ~Cluster();

  void put_node(const ObjectPtr& node);
  void remove_node(const std::string& name);
  void put_namespace(const std::string& name, const json::object& labels);
  void remove_namespace(const std::string& name);

  PodInfoPtr read(const Object& pod);
  // Assigns the pod to the node and removes it from its previous one.
  void place(PodInfoPtr pod, const std::string& node);
  PodInfoPtr remove_pod(const std::string& uid);  // null if it was on no node
  // A pod does not exist any more, wherever it was. Not during a decision: from time to time, frees the groups without pods.
  void note_gone();
  PodInfoPtr placed(const std::string& uid) const;
  std::string node_of(const std::string& uid) const;  // "" if it is on no node
  size_t pods() const { return places_.size(); }      // including pods on nodes that do not exist

  // The existing nodes, alternating between zones, in Kubernetes' order.
  const std::vector<const NodeInfo*>& nodes();
  const NodeInfo* node(const std::string& name) const;  // null if it does not exist
  size_t slots() const { return nodes_by_slot_.size(); }
  const json::array& taints_of(uint32_t set) const { return taint_sets_[set].taints; }
  size_t taint_sets() const { return taint_sets_.size(); }
  bool any_unschedulable() const { return unschedulable_ > 0; }
  int nodes_with_image(std::string_view name) const;

  // Sums. The returned references are valid until begin_decision().
  void begin_decision();
  const Topology& topology(const std::string& key);
  // The number of pods on each node that match all of `terms`; optionally without pods that are being deleted.
  const PodCounter& counter(const std::vector<const PodTerm*>& terms, bool without_deleting);
  // The same text must stand for the same question, about a node's name and labels or about its free resources.
  NodeMemo& memo(const std::string& question);
  template <typename Visit>
  void for_each_held(TermKind kind, Visit&& visit) {  // visit(HeldTerm&)
    for (auto& [text, held] : held_[size_t(kind)]) visit(*held);
  }
  bool means(HeldTerm& held, const LabelGroup& group);
  bool means(const PodTerm& term, const LabelGroup& group) const;
  size_t memo_bytes() const;                              // for tests
  size_t label_groups() const { return groups_.size(); }  // for tests

 private:
  using Absent = std::unordered_map<std::string, std::vector<PodInfoPtr>>;  // pods by the name of a node that does not exist
  struct Place {
    PodInfoPtr pod;
    Slot slot = 0;
    Absent::value_type* absent = nullptr;  // set instead of the slot
  };
  struct TaintSet {
    json::array taints;
    size_t nodes = 0;
  };
  NodeInfo& info(const std::string& name);
  uint32_t taint_set(const json::array& taints);
  void drop_taints(NodeInfo& node);
  void count_images(const NodeInfo& node, int by);
  void count(const PodInfo& pod, NodeInfo& node, int by);
  void hold(const std::vector<PodTerm>& terms, TermKind kind, Slot slot, int by);
  bool means_all(PodCounter& counter, const PodInfo& pod) const;
  void enter_topologies(const NodeInfo& node);
  LabelGroupPtr group_of(const std::string& ns, const json::object& labels);
  void sweep_groups();
  void sweep_groups_now();
  void namespaces_changed();
  void share_memo_bytes();

  std::vector<std::unique_ptr<NodeInfo>> nodes_by_slot_;
  std::vector<Slot> free_slots_;
  std::unordered_map<std::string, Slot> slots_by_name_;
  Absent absent_;
  std::unordered_map<std::string, Place> places_;  // by pod uid
  std::vector<const NodeInfo*> order_;
  bool ordered_ = true;
  std::vector<TaintSet> taint_sets_;
  int64_t unschedulable_ = 0;  // number of nodes
  std::map<std::string, int, std::less<>> image_nodes_;
  std::map<std::string, json::object> namespaces_;

  std::unordered_map<std::string, LabelGroupPtr> groups_;
  std::vector<uint32_t> free_groups_;
  size_t groups_swept_ = 0;                 // those that were left when they were swept
  size_t gone_ = 0;                         // pods since then
  size_t memo_groups_max_ = kMemoBytesMax;  // groups with this number or above are not cached

  uint64_t tick_ = 0, changes_ = 0;
  std::unordered_map<std::string, std::unique_ptr<Topology>> topologies_;
  std::unordered_map<std::string, std::unique_ptr<PodCounter>> counters_;
  std::unordered_map<std::string, std::unique_ptr<NodeMemo>> memos_;
  std::unordered_map<std::string, std::unique_ptr<HeldTerm>> held_[4];
};

// Moves or removes pods temporarily: the destructor undoes it. For evaluating preemption.
class WhatIf {
 public:
  explicit WhatIf(Cluster& cluster) : cluster_(cluster) {}
  ~WhatIf();
  WhatIf(const WhatIf&) = delete;
  WhatIf& operator=(const WhatIf&) = delete;
  void place(const PodInfoPtr& pod, const std::string& node);
  void remove(const PodInfo& pod);

 private:
  Cluster& cluster_;
  struct Change {
    PodInfoPtr pod;
    std::string before;
  };
  std::vector<Change> changes_;
};

}  // namespace coracle::scheduler
