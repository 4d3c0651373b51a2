// SPDX-License-Identifier: Apache-2.0
// Cluster: the nodes, what stands on each, and sums over it, kept level by single changes, so that deciding about one pod does
// not look at all the others. Not thread-safe: whoever shares it guards it. Three kinds of sums are made when first asked for,
// kept level from then on, and forgotten when nobody has asked for a while (kRememberedMax):
//   Topology    which domain ("zone" = "a") each node is in
//   PodCounter  how many of the pods that a selector means stand on each node: what a pod asks about the others
//   NodeMemo    what a selector over nodes says of each node; how well a pod of a certain size would stand there
// and one always, for it is what the others ask about a pod:
//   HeldTerm    how many pods that hold a certain affinity term stand on each node
// Nodes have small numbers (slots), so that sums are plain arrays. Pods that are bound to a node that is not there (yet) are in
// no sum: anybody may bind ten thousand pods to as many names.
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
constexpr size_t kRememberedMax = 256;       // of each kind of sum that is made on demand
constexpr size_t kMemoBytesMax = 16u << 20;  // of all TermMemos together, about: a pod may have 20,000 terms

struct NodeInfo {
  // First what is asked of each node for each pod, so that it lies together.
  Slot slot = 0;
  uint32_t taints = 0;  // Cluster::taints_of(); 0 = none
  bool unschedulable = false;
  int64_t pods_max = 0;
  std::vector<PodInfoPtr> pods;  // in no order
  Amounts allocatable, requested;
  int64_t scored_cpu_milli = 0, scored_memory = 0;
  uint64_t room_since = 0, labels_since = 0;  // which change of the cluster made them what they are; never 0

  std::string name;
  RestingPtr node;
  json::object labels;
  std::vector<std::pair<std::string, int64_t>> images;  // name → bytes, sorted
};

std::optional<std::string_view> label_of(const json::object& labels, std::string_view key);

struct Topology {
  std::vector<int32_t> domain;  // by slot; -1: the node does not have the label
  size_t domains = 0;           // all numbers are below it
  std::unordered_map<std::string, int32_t> numbers;
  uint64_t used = 0;
};

// Whether a term means the pods of a group: asked once for each group, of those whose number is low enough.
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
  std::vector<uint8_t> known_;  // 0 not known, 1 no, 2 yes
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
  std::vector<std::pair<Slot, int32_t>> holders;  // how many pods on which node; sorted

 private:
  friend class Cluster;
  int64_t count = 0;
  TermMemo memo;
};

// The answers of all nodes to one question, good for as long as what it is about is the same. Pods of one template ask the same.
class NodeMemo {
 public:
  // `since`: of what the question is about, NodeInfo::room_since or labels_since. `compute` is called when the node has not been
  // asked since then.
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
  // The pod stands there from now on, wherever it stood before.
  void place(PodInfoPtr pod, const std::string& node);
  PodInfoPtr remove_pod(const std::string& uid);  // null when it was nowhere
  PodInfoPtr placed(const std::string& uid) const;
  std::string node_of(const std::string& uid) const;  // "" when it stands nowhere
  size_t pods() const { return places_.size(); }      // also of nodes that are not there

  // The nodes that are there, zones taking turns, as Kubernetes goes through them.
  const std::vector<const NodeInfo*>& nodes();
  const NodeInfo* node(const std::string& name) const;  // null when not there
  size_t slots() const { return nodes_by_slot_.size(); }
  const json::array& taints_of(uint32_t set) const { return taint_sets_[set].taints; }
  size_t taint_sets() const { return taint_sets_.size(); }
  bool any_unschedulable() const { return unschedulable_ > 0; }
  int nodes_with_image(std::string_view name) const;

  // Sums. What they return is good until begin_decision().
  void begin_decision();
  const Topology& topology(const std::string& key);
  // How many pods that all of `terms` mean stand on each node. Without those that are being deleted, if so asked.
  const PodCounter& counter(const std::vector<const PodTerm*>& terms, bool without_deleting);
  // The same text must mean the same question, about a node's name and labels or about its room.
  NodeMemo& memo(const std::string& question);
  template <typename Visit>
  void for_each_held(TermKind kind, Visit&& visit) {  // visit(HeldTerm&)
    for (auto& [text, held] : held_[size_t(kind)]) visit(*held);
  }
  bool means(HeldTerm& held, const LabelGroup& group);
  bool means(const PodTerm& term, const LabelGroup& group) const;
  size_t memo_bytes() const;  // for tests

 private:
  using Absent = std::unordered_map<std::string, std::vector<PodInfoPtr>>;  // pods by a node that is not there
  struct Place {
    PodInfoPtr pod;
    Slot slot = 0;
    Absent::value_type* absent = nullptr;  // then it has no slot
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
  int64_t unschedulable_ = 0;  // nodes
  std::map<std::string, int, std::less<>> image_nodes_;
  std::map<std::string, json::object> namespaces_;

  std::unordered_map<std::string, LabelGroupPtr> groups_;
  std::vector<uint32_t> free_groups_;
  size_t groups_swept_ = 0;
  size_t memo_groups_max_ = kMemoBytesMax;  // groups from this number on are asked about each time

  uint64_t tick_ = 0, changes_ = 0;
  std::unordered_map<std::string, std::unique_ptr<Topology>> topologies_;
  std::unordered_map<std::string, std::unique_ptr<PodCounter>> counters_;
  std::unordered_map<std::string, std::unique_ptr<NodeMemo>> memos_;
  std::unordered_map<std::string, std::unique_ptr<HeldTerm>> held_[4];
};

// For as long as this lives the pod stands there, or not: to see what would follow.
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
