// SPDX-License-Identifier: Apache-2.0
// InterPodAffinity: affinity and anti-affinity terms, of the pod to be scheduled and of existing pods. Both directions use the
// Cluster's sums:
//   terms of the pod to be scheduled     PodCounter ─┐
//   terms of existing pods               HeldTerm ───┴─▶ numbers by domain, once per pod ─▶ a lookup for each node
// Source: Kubernetes "Inter-pod affinity and anti-affinity", InterPodAffinityArgs.
#include <algorithm>

#include "daemon/scheduler/plugins/plugins.h"

namespace coracle::scheduler {
namespace {

// Terms of a deleted pod that are evaluated for each waiting pod; with more, it may help any pod.
constexpr size_t kTermsAskedMax = 100;

// A number for each domain of a topology.
struct ByDomain {
  const Topology* topology = nullptr;
  std::vector<int64_t> numbers;

  explicit ByDomain(const Topology& topology) : topology(&topology), numbers(topology.domains, 0) {}
  void add(Slot slot, int64_t number) {
    if (int32_t domain = topology->domain[slot]; domain >= 0) numbers[size_t(domain)] += number;
  }
  void add(const PodCounter& counter, int64_t factor) {
    for (Slot slot = 0; slot < counter.by_slot.size(); slot++)
      if (counter.by_slot[slot]) add(slot, factor * counter.by_slot[slot]);
  }
  void add(const HeldTerm& held, int64_t factor) {
    for (const auto& [slot, count] : held.holders) add(slot, factor * count);
  }
  bool any() const {
    return std::ranges::any_of(numbers, [](int64_t number) { return number != 0; });
  }
  std::optional<int64_t> at(Slot slot) const {
    int32_t domain = topology->domain[slot];
    if (domain < 0) return std::nullopt;
    return numbers[size_t(domain)];
  }
};

struct FilterState : CycleState::State {
  std::vector<ByDomain> wanted;                               // for the pod's affinity terms
  std::vector<ByDomain> unwanted;                             // for its anti-affinity terms
  std::vector<std::pair<const HeldTerm*, ByDomain>> shunned;  // for anti-affinity terms of existing pods
  bool first_of_its_kind = false;
};

struct InterPodAffinityScoreState : CycleState::State {
  std::map<std::string, ByDomain> by_key;
};

class InterPodAffinity : public Plugin {
 public:
  explicit InterPodAffinity(InterPodAffinityArgs args) : args_(args) {}
  std::string_view name() const override { return "InterPodAffinity"; }
  uint32_t points() const override { return pre_filter_point | filter_point | pre_score_point | score_point; }

  Answer pre_filter(CycleState& cycle, Reasons&) const override {
    const PodInfo& pod = *cycle.info;
    Cluster& cluster = cycle.cluster;
    auto state = std::make_unique<FilterState>();
    cluster.for_each_held(TermKind::anti_affinity, [&](HeldTerm& held) {
      if (!cluster.means(held, *pod.group)) return;
      ByDomain domains(cluster.topology(held.term.topology_key));
      domains.add(held, 1);
      state->shunned.emplace_back(&held, std::move(domains));
    });
    if (!pod.affinity.empty()) want(cycle, *state);
    for (const PodTerm& term : pod.anti_affinity) {
      ByDomain& domains = state->unwanted.emplace_back(cluster.topology(term.topology_key));
      domains.add(cluster.counter({&term}, false), 1);
    }
    if (pod.affinity.empty() && pod.anti_affinity.empty() && state->shunned.empty()) return Answer::skip;
    cycle.filter_state[index] = std::move(state);
    return Answer::success;
  }

  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    const auto& state = static_cast<const FilterState&>(*cycle.filter_state[index]);
    const PodInfo& pod = *cycle.info;
    bool labelled = true, met = true;
    for (const ByDomain& wanted : state.wanted) {
      auto here = wanted.at(node.slot);
      labelled &= here.has_value();
      met &= here.value_or(0) > 0;
    }
    if (!labelled || (!met && !state.first_of_its_kind)) {
      if (why)
        why->push_back(
            {"node(s) didn't match pod affinity rules", unmet(pod, state, node), "a pod there that its affinity terms mean"});
      return Answer::unresolvable;
    }
    for (size_t i = 0; i < state.unwanted.size(); i++) {
      if (state.unwanted[i].at(node.slot).value_or(0) <= 0) continue;
      if (why) {
        const std::string& key = pod.anti_affinity[i].topology_key;
        why->push_back({"node(s) didn't match pod anti-affinity rules",
                        std::to_string(*state.unwanted[i].at(node.slot)) + " such pods in its " + key,
                        "the pods in its " + key + " that the anti-affinity terms mean gone"});
      }
      return Answer::unschedulable;
    }
    for (const auto& [held, domains] : state.shunned) {
      if (domains.at(node.slot).value_or(0) <= 0) continue;
      if (why)
        why->push_back({"node(s) didn't satisfy existing pods anti-affinity rules",
                        std::to_string(*domains.at(node.slot)) + " pods in its " + held->term.topology_key + " keep it away",
                        "the pods in its " + held->term.topology_key + " that keep it away gone"});
      return Answer::unschedulable;
    }
    return Answer::success;
  }

  Answer pre_score(CycleState& cycle, const std::vector<const NodeInfo*>&) const override {
    const PodInfo& pod = *cycle.info;
    Cluster& cluster = cycle.cluster;
    bool own = !pod.preferred.empty() || !pod.preferred_anti.empty();
    if (args_.ignore_preferred_terms_of_existing_pods && !own) return Answer::skip;
    auto state = std::make_unique<InterPodAffinityScoreState>();
    auto domains = [&](const std::string& key) -> ByDomain& {
      return state->by_key.try_emplace(key, cluster.topology(key)).first->second;
    };
    for (const PodTerm& term : pod.preferred) domains(term.topology_key).add(cluster.counter({&term}, false), term.weight);
    for (const PodTerm& term : pod.preferred_anti) domains(term.topology_key).add(cluster.counter({&term}, false), -term.weight);
    auto held = [&](TermKind kind, int64_t sign, int64_t fixed) {
      cluster.for_each_held(kind, [&](HeldTerm& one) {
        if (cluster.means(one, *pod.group)) domains(one.term.topology_key).add(one, fixed ? fixed : sign * one.term.weight);
      });
    };
    if (args_.hard_pod_affinity_weight > 0) held(TermKind::affinity, 1, args_.hard_pod_affinity_weight);
    held(TermKind::preferred, 1, 0);
    held(TermKind::preferred_anti, -1, 0);
    std::erase_if(state->by_key, [](const auto& entry) { return !entry.second.any(); });
    if (state->by_key.empty()) return Answer::skip;
    cycle.score_state[index] = std::move(state);
    return Answer::success;
  }
  void score(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    const auto& state = static_cast<const InterPodAffinityScoreState&>(*cycle.score_state[index]);
    score_each(scores, [&](const NodeInfo& node) {
      int64_t sum = 0;
      for (const auto& [key, domains] : state.by_key) sum += domains.at(node.slot).value_or(0);
      return sum;
    });
  }
  void normalize(const CycleState&, std::vector<NodeScore>& scores) const override {
    auto [least, most] = std::ranges::minmax_element(scores, {}, &NodeScore::score);
    int64_t low = least->score, span = most->score - low;
    for (NodeScore& one : scores)
      one.score = span > 0 ? int64_t(double(kNodeScoreMax) * (double(one.score - low) / double(span))) : 0;
  }

  bool could_help(const ClusterEvent& event, const PodInfo& pod, Cluster& cluster) const override {
    if (event.is(ClusterEvent::namespaces)) return true;
    auto means = [&](const std::vector<PodTerm>& terms) {
      return std::ranges::any_of(terms, [&](const PodTerm& term) { return cluster.means(term, *event.pod->group); });
    };
    if (event.is(ClusterEvent::pod_labels)) return true;
    if (event.is(ClusterEvent::pod_placed)) return means(pod.affinity);
    if (event.is(ClusterEvent::pod_removed))
      return means(pod.affinity) || means(pod.anti_affinity) || event.pod->anti_affinity.size() > kTermsAskedMax ||
             std::ranges::any_of(event.pod->anti_affinity, [&](const PodTerm& term) { return cluster.means(term, *pod.group); });
    if (!event.is(ClusterEvent::node_added | ClusterEvent::node_labels)) return false;
    return std::ranges::all_of(
        pod.affinity, [&](const PodTerm& term) { return label_value(event.node->labels, term.topology_key).has_value(); });
  }

 private:
  static void want(CycleState& cycle, FilterState& state) {
    const PodInfo& pod = *cycle.info;
    std::vector<const PodTerm*> terms;
    for (const PodTerm& term : pod.affinity) terms.push_back(&term);
    const PodCounter& counter = cycle.cluster.counter(terms, false);
    bool anywhere = false;
    for (const PodTerm& term : pod.affinity) {
      ByDomain& domains = state.wanted.emplace_back(cycle.cluster.topology(term.topology_key));
      domains.add(counter, 1);
      anywhere |= domains.any();
    }
    // The first pod of a group with affinity to itself may be placed on any node that has the domains, because no matching pod
    // exists yet.
    state.first_of_its_kind =
        !anywhere && std::ranges::all_of(terms, [&](const PodTerm* term) { return cycle.cluster.means(*term, *pod.group); });
  }
  static std::string unmet(const PodInfo& pod, const FilterState& state, const NodeInfo& node) {
    for (size_t i = 0; i < state.wanted.size(); i++) {
      auto here = state.wanted[i].at(node.slot);
      if (!here) return "it has no label " + pod.affinity[i].topology_key;
      if (*here <= 0) return "no such pod in its " + pod.affinity[i].topology_key;
    }
    return "";
  }
  InterPodAffinityArgs args_;
};

}  // namespace

std::unique_ptr<Plugin> make_inter_pod_affinity(InterPodAffinityArgs args) { return std::make_unique<InterPodAffinity>(args); }

}  // namespace coracle::scheduler
