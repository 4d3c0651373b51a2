// SPDX-License-Identifier: Apache-2.0
// PodTopologySpread: spreads pods evenly over zones, nodes or other topology domains. Source: Kubernetes "Pod Topology Spread
// Constraints", KEP-895 and its successors, PodTopologySpreadArgs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/placement/placement.h"
#include "daemon/scheduler/plugins/plugins.h"
#include "daemon/scheduler/plugins/pod_selectors.h"

namespace coracle::scheduler {
namespace {

constexpr const char* kHostname = "kubernetes.io/hostname";

// Which nodes count for a constraint, evaluated at most once per node and kind of constraint.
class Counted {
 public:
  Counted(const CycleState& cycle, const std::vector<const SpreadConstraint*>& constraints, bool all_keys)
      : cycle_(cycle), all_keys_(all_keys) {
    wishes_ = node_wishes(cycle);
    for (const SpreadConstraint* constraint : constraints)
      topologies_.push_back(&cycle.cluster.topology(constraint->pods.topology_key));
    for (uint32_t set = 0; set < cycle.cluster.taint_sets(); set++) tolerated_.push_back(tolerates(cycle.cluster.taints_of(set)));
  }
  const Topology& topology(size_t constraint) const { return *topologies_[constraint]; }
  bool has_keys(Slot slot) const {
    return !all_keys_ || std::ranges::all_of(topologies_, [&](const Topology* topology) { return topology->domain[slot] >= 0; });
  }
  bool counts(const NodeInfo& node, const SpreadConstraint& constraint) const {
    if (constraint.honor_taints && !tolerated_[node.taints]) return false;
    return !constraint.honor_affinity || !wishes_ || is_wished(cycle_, *wishes_, node);
  }

 private:
  bool tolerates(const json::array& taints) const {
    for (const json::value& taint : taints)
      if (view::Taint(taint).effect() != "PreferNoSchedule" && !placement::tolerates(cycle_.pod, view::Taint(taint)))
        return false;
    return true;
  }
  const CycleState& cycle_;
  NodeMemo* wishes_ = nullptr;
  std::vector<const Topology*> topologies_;
  std::vector<bool> tolerated_;
  bool all_keys_;
};

std::vector<SpreadConstraint> defaults_for(const CycleState& cycle, const json::array& constraints) {
  std::vector<SpreadConstraint> out;
  auto selector = default_selector(*cycle.object, cycle.lister);
  if (!selector) return out;
  for (const json::value& raw : constraints) {
    view::TopologySpreadConstraint view(raw);
    SpreadConstraint one;
    one.pods = term_of(cycle.info->key.ns, *selector, std::string(view.topology_key()));
    one.max_skew = view.max_skew();
    one.required = view.when_unsatisfiable() == "DoNotSchedule";
    out.push_back(std::move(one));
  }
  return out;
}

struct State : CycleState::State {
  std::vector<SpreadConstraint> defaults;            // used if the pod has none of its own
  std::vector<const SpreadConstraint*> constraints;  // of the required or the preferred kind
  std::vector<const Topology*> topologies;
  std::vector<const PodCounter*> counters;
  std::vector<std::vector<int64_t>> counts;  // by constraint and domain: number of pods; -1: no node of the domain counts
  std::vector<int64_t> least;                // by constraint: number of pods in the domain with the fewest
  std::vector<int64_t> self;                 // by constraint: 1 if the pod matches its own selector
  std::vector<double> weights;
  bool all_keys = true;

  bool lacks_a_key(Slot slot) const {
    return all_keys && std::ranges::any_of(topologies, [&](const Topology* topology) { return topology->domain[slot] < 0; });
  }
};

class PodTopologySpread : public Plugin {
 public:
  explicit PodTopologySpread(PodTopologySpreadArgs args) : args_(std::move(args)) {
    if (!args_.system_defaults) return;
    args_.constraints = {
        {{"maxSkew", 3}, {"topologyKey", kHostname}, {"whenUnsatisfiable", "ScheduleAnyway"}},
        {{"maxSkew", 5}, {"topologyKey", "topology.kubernetes.io/zone"}, {"whenUnsatisfiable", "ScheduleAnyway"}}};
  }
  std::string_view name() const override { return "PodTopologySpread"; }
  uint32_t points() const override { return pre_filter_point | filter_point | pre_score_point | score_point; }

  Answer pre_filter(CycleState& cycle, Reasons&) const override {
    auto state = choose(cycle, true);
    if (state->constraints.empty()) return Answer::skip;
    Counted counted(cycle, state->constraints, true);
    count(cycle, counted, *state, [](size_t) { return true; });
    for (size_t i = 0; i < state->constraints.size(); i++) {
      int64_t least = std::numeric_limits<int32_t>::max(), domains = 0;
      for (int64_t pods : state->counts[i]) {
        if (pods < 0) continue;
        ++domains;
        least = std::min(least, pods);
      }
      state->least.push_back(domains < state->constraints[i]->min_domains ? 0 : least);
      state->self.push_back(cycle.cluster.means(state->constraints[i]->pods, *cycle.info->group));
    }
    cycle.filter_state[index] = std::move(state);
    return Answer::success;
  }

  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    const State& state = static_cast<const State&>(*cycle.filter_state[index]);
    for (size_t i = 0; i < state.constraints.size(); i++) {
      const SpreadConstraint& constraint = *state.constraints[i];
      int32_t domain = state.topologies[i]->domain[node.slot];
      if (domain < 0) {
        if (why)
          why->push_back({"node(s) didn't match pod topology spread constraints (missing required label)",
                          "it has no label " + constraint.pods.topology_key,
                          "label " + constraint.pods.topology_key + " on node " + node.name});
        return Answer::unresolvable;
      }
      int64_t here = std::max<int64_t>(state.counts[i][size_t(domain)], 0), skew = here + state.self[i] - state.least[i];
      if (skew <= constraint.max_skew) continue;
      if (why)
        why->push_back({"node(s) didn't match pod topology spread constraints",
                        constraint.pods.topology_key + " would have " + std::to_string(here + state.self[i]) +
                            " such pods, another has " + std::to_string(state.least[i]) + ", skew " + std::to_string(skew) +
                            " of at most " + std::to_string(constraint.max_skew),
                        "a node in a " + constraint.pods.topology_key + " with fewer such pods"});
      return Answer::unschedulable;
    }
    return Answer::success;
  }

  Answer pre_score(CycleState& cycle, const std::vector<const NodeInfo*>& nodes) const override {
    auto state = choose(cycle, false);
    if (state->constraints.empty()) return Answer::skip;
    // Kubernetes' system defaults also apply to nodes without the labels.
    state->all_keys = !cycle.info->spread.empty() || !args_.system_defaults;
    Counted counted(cycle, state->constraints, state->all_keys);
    for (const SpreadConstraint* constraint : state->constraints)
      state->topologies.push_back(&cycle.cluster.topology(constraint->pods.topology_key));
    std::vector<std::vector<bool>> present;
    size_t ignored = 0;
    for (size_t i = 0; i < state->constraints.size(); i++) present.emplace_back(counted.topology(i).domains, false);
    for (const NodeInfo* node : nodes) {
      if (state->lacks_a_key(node->slot)) {
        ++ignored;
        continue;
      }
      for (size_t i = 0; i < present.size(); i++)
        if (int32_t domain = counted.topology(i).domain[node->slot]; domain >= 0) present[i][size_t(domain)] = true;
    }
    state->topologies.clear();
    count(cycle, counted, *state, [&](size_t i) { return state->constraints[i]->pods.topology_key != kHostname; });
    for (size_t i = 0; i < state->constraints.size(); i++) {
      bool by_host = state->constraints[i]->pods.topology_key == kHostname;
      size_t domains = by_host ? nodes.size() - ignored : size_t(std::ranges::count(present[i], true));
      state->weights.push_back(std::log(double(domains) + 2));
      for (size_t domain = 0; domain < present[i].size(); domain++)
        if (!present[i][domain]) state->counts[i][domain] = 0;
    }
    cycle.score_state[index] = std::move(state);
    return Answer::success;
  }
  void score(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    const State& state = static_cast<const State&>(*cycle.score_state[index]);
    score_each(scores, [&](const NodeInfo& node) -> int64_t {
      if (state.lacks_a_key(node.slot)) return 0;
      double sum = 0;
      for (size_t i = 0; i < state.constraints.size(); i++) {
        const SpreadConstraint& constraint = *state.constraints[i];
        int32_t domain = state.topologies[i]->domain[node.slot];
        if (domain < 0) continue;
        int64_t pods = constraint.pods.topology_key == kHostname ? state.counters[i]->by_slot[node.slot]
                                                                 : std::max<int64_t>(state.counts[i][size_t(domain)], 0);
        sum += double(pods) * state.weights[i] + double(constraint.max_skew - 1);
      }
      return int64_t(std::round(sum));
    });
  }
  void normalize(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    const State& state = static_cast<const State&>(*cycle.score_state[index]);
    int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
    for (const NodeScore& one : scores) {
      if (state.lacks_a_key(one.node->slot)) continue;
      least = std::min(least, one.score);
      most = std::max(most, one.score);
    }
    for (NodeScore& one : scores) {
      if (state.lacks_a_key(one.node->slot)) one.score = 0;
      else if (most == 0) one.score = kNodeScoreMax;
      else one.score = kNodeScoreMax * (most + least - one.score) / most;
    }
  }

  bool could_help(const ClusterEvent& event, const PodInfo& pod, Cluster& cluster) const override {
    if (event.is(ClusterEvent::pod_placed | ClusterEvent::pod_removed | ClusterEvent::pod_labels)) {
      if (event.pod->key.ns != pod.key.ns) return false;
      if (event.is(ClusterEvent::pod_labels) || pod.spread.empty()) return true;
      return std::ranges::any_of(
          pod.spread, [&](const SpreadConstraint& one) { return one.required && cluster.means(one.pods, *event.pod->group); });
    }
    if (event.is(ClusterEvent::node_removed)) return true;
    if (!event.is(ClusterEvent::node_added | ClusterEvent::node_labels | ClusterEvent::node_taints)) return false;
    return std::ranges::all_of(pod.spread, [&](const SpreadConstraint& one) {
      return !one.required || label_value(event.node->labels, one.pods.topology_key);
    });
  }

 private:
  std::unique_ptr<State> choose(const CycleState& cycle, bool required) const {
    auto state = std::make_unique<State>();
    if (cycle.info->spread.empty() && std::ranges::any_of(args_.constraints, [&](const json::value& one) {
          return (view::TopologySpreadConstraint(one).when_unsatisfiable() == "DoNotSchedule") == required;
        }))
      state->defaults = defaults_for(cycle, args_.constraints);
    for (const SpreadConstraint& one : cycle.info->spread.empty() ? state->defaults : cycle.info->spread)
      if (one.required == required) state->constraints.push_back(&one);
    return state;
  }

  // Counts pods by domain, on the nodes that count.
  template <typename Wanted>
  static void count(CycleState& cycle, const Counted& counted, State& state, Wanted wanted) {
    for (size_t i = 0; i < state.constraints.size(); i++) {
      const SpreadConstraint& constraint = *state.constraints[i];
      const Topology& topology = counted.topology(i);
      const PodCounter& counter = cycle.cluster.counter({&constraint.pods}, true);
      state.topologies.push_back(&topology);
      state.counters.push_back(&counter);
      auto& counts = state.counts.emplace_back(topology.domains, -1);
      if (!wanted(i)) continue;
      for (const NodeInfo* node : cycle.cluster.nodes()) {
        int32_t domain = topology.domain[node->slot];
        if (domain < 0 || !counted.has_keys(node->slot) || !counted.counts(*node, constraint)) continue;
        counts[size_t(domain)] = std::max<int64_t>(counts[size_t(domain)], 0) + counter.by_slot[node->slot];
      }
    }
  }

  PodTopologySpreadArgs args_;
};

}  // namespace

std::unique_ptr<Plugin> make_pod_topology_spread(PodTopologySpreadArgs args) {
  return std::make_unique<PodTopologySpread>(std::move(args));
}

}  // namespace coracle::scheduler
