// SPDX-License-Identifier: Apache-2.0
// NodeAffinity: nodes required or preferred by label or name. Source: Kubernetes "Assigning Pods to Nodes".
#include <algorithm>
#include <set>

#include "daemon/placement/placement.h"
#include "daemon/scheduler/plugins/plugins.h"

namespace coracle::scheduler {
namespace {

using Terms = view::Range<view::PreferredSchedulingTerm>;

// The node names that a term requires; nullopt if it requires none.
std::optional<std::set<std::string>> names_in(const view::NodeSelectorTerm& term) {
  std::optional<std::set<std::string>> names;
  for (view::NodeSelectorRequirement field : term.match_fields()) {
    if (field.key() != "metadata.name" || field.operator_() != "In") continue;
    std::set<std::string> these;
    for (std::string_view value : field.values())
      if (!names || names->contains(std::string(value))) these.emplace(value);
    names = std::move(these);
  }
  return names;
}

int64_t preference_for(const Terms& terms, const NodeInfo& node) {
  int64_t sum = 0;
  for (view::PreferredSchedulingTerm term : terms)
    if (placement::node_matches(term.preference(), node.labels, node.name)) sum += term.weight();
  return sum;
}

class NodeAffinity : public Plugin {
 public:
  explicit NodeAffinity(NodeAffinityArgs args) : args_(std::move(args)) {}
  std::string_view name() const override { return "NodeAffinity"; }
  uint32_t points() const override { return pre_filter_point | filter_point | pre_score_point | score_point; }

  struct State : CycleState::State {
    explicit State(NodeMemo& memo) : memo(memo) {}
    NodeMemo& memo;
  };

  Answer pre_filter(CycleState& cycle, Reasons& why) const override {
    view::PodSpec spec = cycle.pod.spec();
    view::NodeAffinity affinity = spec.affinity().node_affinity();
    NodeMemo* wishes = node_wishes(cycle);
    if (!wishes && !added().has_required_during_scheduling_ignored_during_execution()) return Answer::skip;
    auto terms = affinity.required_during_scheduling_ignored_during_execution();
    if (wishes) cycle.filter_state[index] = std::make_unique<State>(*wishes);
    std::set<std::string> names;
    for (view::NodeSelectorTerm term : terms.node_selector_terms()) {
      auto in_term = names_in(term);
      if (!in_term) return Answer::success;
      names.insert(in_term->begin(), in_term->end());
    }
    if (terms.node_selector_terms().empty()) return Answer::success;
    if (names.empty()) {
      why.push_back({"pod affinity terms conflict", "", "other matchFields in the pod's node affinity"});
      return Answer::unresolvable;
    }
    cycle.only.emplace(names.begin(), names.end());
    return Answer::success;
  }

  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    if (!added_holds(node)) {
      if (why) why->push_back({"node(s) didn't match scheduler-enforced node affinity", "the scheduler's addedAffinity", ""});
      return Answer::unresolvable;
    }
    const CycleState::State* state = cycle.filter_state[index].get();
    if (!state || is_wished(cycle, static_cast<const State*>(state)->memo, node)) return Answer::success;
    if (why)
      why->push_back({"node(s) didn't match Pod's node affinity/selector", figures(cycle.pod, node),
                      "a node with the labels that the pod wants"});
    return Answer::unresolvable;
  }

  Answer pre_score(CycleState& cycle, const std::vector<const NodeInfo*>&) const override {
    Terms terms = preferred(cycle.pod.spec().affinity().node_affinity());
    if (terms.empty() && preferred(added()).empty()) return Answer::skip;
    cycle.score_state[index] =
        std::make_unique<State>(cycle.cluster.memo("prefers " + to_text(cycle.pod.spec().affinity().node_affinity().raw())));
    return Answer::success;
  }
  void score(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    NodeMemo& memo = static_cast<const State&>(*cycle.score_state[index]).memo;
    score_each(scores, [&](const NodeInfo& node) {
      return preference_for(preferred(added()), node) + memo.ask(node, node.labels_since, [&] {
        return preference_for(preferred(cycle.pod.spec().affinity().node_affinity()), node);
      });
    });
  }
  void normalize(const CycleState&, std::vector<NodeScore>& scores) const override { normalize_to_max(scores, false); }

  bool could_help(const ClusterEvent& event, const PodInfo& info, Cluster&) const override {
    if (!event.is(ClusterEvent::node_added | ClusterEvent::node_labels)) return false;
    ObjectPtr pod = info.object->awake();
    return added_holds(*event.node) && placement::node_wanted(view::Pod(*pod), event.node->labels, event.node->name);
  }

 private:
  static Terms preferred(const view::NodeAffinity& affinity) {
    return affinity.preferred_during_scheduling_ignored_during_execution();
  }
  view::NodeAffinity added() const { return view::NodeAffinity(args_.added); }
  bool added_holds(const NodeInfo& node) const {
    if (!added().has_required_during_scheduling_ignored_during_execution()) return true;
    auto terms = added().required_during_scheduling_ignored_during_execution().node_selector_terms();
    return std::any_of(terms.begin(), terms.end(),
                       [&](view::NodeSelectorTerm term) { return placement::node_matches(term, node.labels, node.name); });
  }
  static std::string figures(const view::Pod& pod, const NodeInfo& node) {
    for (const auto& [key, value] : pod.spec().node_selector()) {
      auto have = label_value(node.labels, key);
      if (!have || !value.is_string() || *have != std::string_view(value.get_string()))
        return "wants " + std::string(key) + "=" + (value.is_string() ? std::string(value.get_string()) : "") +
               (have ? ", has " + std::string(*have) : ", does not have the label");
    }
    return "no term of its required node affinity holds";
  }
  NodeAffinityArgs args_;
};

}  // namespace

NodeMemo* node_wishes(const CycleState& cycle) {
  view::PodSpec spec = cycle.pod.spec();
  view::NodeAffinity affinity = spec.affinity().node_affinity();
  if (spec.node_selector().empty() && !affinity.has_required_during_scheduling_ignored_during_execution()) return nullptr;
  return &cycle.cluster.memo("wants " + to_text(spec.node_selector()) +
                             to_text(affinity.required_during_scheduling_ignored_during_execution().raw()));
}

bool is_wished(const CycleState& cycle, NodeMemo& wishes, const NodeInfo& node) {
  return wishes.ask(node, node.labels_since, [&] { return int64_t(placement::node_wanted(cycle.pod, node.labels, node.name)); });
}

std::unique_ptr<Plugin> make_node_affinity(NodeAffinityArgs args) { return std::make_unique<NodeAffinity>(std::move(args)); }

}  // namespace coracle::scheduler
