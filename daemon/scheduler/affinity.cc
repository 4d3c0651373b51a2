// SPDX-License-Identifier: Apache-2.0
// Affinity, anti-affinity, spreading, tolerations. See affinity.h.
#include "daemon/scheduler/affinity.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "daemon/placement/placement.h"
#include "store/object/selector.h"

namespace coracle::scheduler {

using placement::label_of;
using placement::node_matches;
using placement::node_wanted;
using placement::tolerates;

namespace {

// ---- pods ----

// One affinity term, made ready to be asked about many pods.
struct Term {
  std::string topology_key;
  LabelSelector selector = LabelSelector::nothing();
  std::vector<std::string> namespaces;
  std::optional<LabelSelector> namespace_selector;

  bool matches(const Object& pod, const NamespaceLabels& namespace_labels) const {
    return selector.matches(pod) && in_namespace(pod.ns(), namespace_labels);
  }
  bool in_namespace(const std::string& ns, const NamespaceLabels& namespace_labels) const {
    if (std::find(namespaces.begin(), namespaces.end(), ns) != namespaces.end()) return true;
    if (!namespace_selector) return false;
    if (namespace_selector->empty()) return true;
    return namespace_labels && namespace_selector->matches(namespace_labels(ns));
  }
};

Term term_of(const view::PodAffinityTerm& view, const Object& owner) {
  Term term{std::string(view.topology_key())};
  if (auto selector = LabelSelector::from_json(&view.label_selector().raw())) term.selector = std::move(*selector);
  for (std::string_view ns : view.namespaces()) term.namespaces.emplace_back(ns);
  if (view.has_namespace_selector()) {
    if (auto selector = LabelSelector::from_json(&view.namespace_selector().raw()))
      term.namespace_selector = std::move(*selector);
  }
  if (term.namespaces.empty() && !term.namespace_selector) term.namespaces.push_back(owner.ns());
  return term;
}

template <typename Terms>
std::vector<Term> terms_of(const Terms& views, const Object& owner) {
  std::vector<Term> out;
  for (view::PodAffinityTerm term : views) out.push_back(term_of(term, owner));
  return out;
}

bool same_domain(const Object& a, const Object& b, std::string_view topology_key) {
  auto in_a = label_of(a, topology_key), in_b = label_of(b, topology_key);
  return in_a && in_b && *in_a == *in_b;
}

// Calls visit(pod, its node) for every placed pod whose node is known.
template <typename Visit>
void for_each_pod(const Cluster& cluster, Visit visit) {
  for (const auto& [name, info] : cluster.nodes()) {
    if (!info.node) continue;
    for (const auto& [uid, placed] : info.pods) visit(*placed.pod, *info.node);
  }
}

bool affinity_holds(const Object& pod, const std::vector<Term>& terms, const Object& node, const Cluster& cluster,
                    const NamespaceLabels& labels) {
  auto matches_all = [&](const Object& other) {
    return std::all_of(terms.begin(), terms.end(), [&](const Term& term) { return term.matches(other, labels); });
  };
  std::vector<bool> met(terms.size(), false);
  bool anywhere = false;
  for_each_pod(cluster, [&](const Object& other, const Object& where) {
    if (!matches_all(other)) return;
    for (size_t i = 0; i < terms.size(); ++i) {
      anywhere |= label_of(where, terms[i].topology_key).has_value();
      if (same_domain(node, where, terms[i].topology_key)) met[i] = true;
    }
  });
  if (std::find(met.begin(), met.end(), false) == met.end()) return true;
  // The first of its kind may stand anywhere that has the domains: nobody is there yet to stand with.
  bool has_domains =
      std::all_of(terms.begin(), terms.end(), [&](const Term& t) { return label_of(node, t.topology_key); });
  return !anywhere && matches_all(pod) && has_domains;
}

// ---- spreading ----

struct Constraint {
  std::string key;
  int64_t max_skew, min_domains;
  bool honor_affinity, honor_taints;
  LabelSelector selector = LabelSelector::nothing();
};

std::vector<Constraint> constraints_of(const Object& object, std::string_view when) {
  std::vector<Constraint> out;
  for (view::TopologySpreadConstraint view : view::Pod(object).spec().topology_spread_constraints()) {
    if (view.when_unsatisfiable() != when) continue;
    Constraint constraint{std::string(view.topology_key()), view.max_skew(), view.min_domains(),
                          view.node_affinity_policy() != "Ignore", view.node_taints_policy() == "Honor"};
    if (auto selector = LabelSelector::from_json(&view.label_selector().raw()))
      constraint.selector = std::move(*selector);
    out.push_back(std::move(constraint));
  }
  return out;
}

bool tolerates_all(const view::Pod& pod, const Object& node) {
  for (view::Taint taint : view::Node(node).spec().taints())
    if (taint.effect() != "PreferNoSchedule" && !tolerates(pod, taint)) return false;
  return true;
}

// Matching pods per domain, over the nodes that count for the constraint.
std::map<std::string_view, int64_t> domains(const Object& pod, const Constraint& constraint, const Cluster& cluster) {
  std::map<std::string_view, int64_t> counts;
  for (const auto& [name, info] : cluster.nodes()) {
    if (!info.node) continue;
    auto domain = label_of(*info.node, constraint.key);
    if (!domain) continue;
    if (constraint.honor_affinity && !node_wanted(view::Pod(pod), *info.node)) continue;
    if (constraint.honor_taints && !tolerates_all(view::Pod(pod), *info.node)) continue;
    int64_t& count = counts[*domain];
    for (const auto& [uid, placed] : info.pods)
      if (placed.pod->ns() == pod.ns() && !placed.pod->deleting() && constraint.selector.matches(*placed.pod)) ++count;
  }
  return counts;
}

}  // namespace

PodAffinityVerdict check_pod_affinity(const Object& pod, const NodeInfo& node, const Cluster& cluster,
                                      const NamespaceLabels& labels) {
  view::Affinity affinity = view::Pod(pod).spec().affinity();
  auto near = terms_of(affinity.pod_affinity().required_during_scheduling_ignored_during_execution(), pod);
  if (!near.empty() && !affinity_holds(pod, near, *node.node, cluster, labels)) return PodAffinityVerdict::affinity;
  auto far = terms_of(affinity.pod_anti_affinity().required_during_scheduling_ignored_during_execution(), pod);
  PodAffinityVerdict verdict = PodAffinityVerdict::fits;
  for_each_pod(cluster, [&](const Object& other, const Object& where) {
    for (const Term& term : far)
      if (same_domain(*node.node, where, term.topology_key) && term.matches(other, labels))
        verdict = PodAffinityVerdict::anti_affinity;
    if (verdict != PodAffinityVerdict::fits || !view::Pod(other).spec().affinity().has_pod_anti_affinity()) return;
    auto theirs = view::Pod(other).spec().affinity().pod_anti_affinity();
    for (const Term& term : terms_of(theirs.required_during_scheduling_ignored_during_execution(), other))
      if (same_domain(*node.node, where, term.topology_key) && term.matches(pod, labels))
        verdict = PodAffinityVerdict::existing_anti_affinity;
  });
  return verdict;
}

SpreadVerdict check_spread(const Object& pod, const NodeInfo& node, const Cluster& cluster) {
  for (const Constraint& constraint : constraints_of(pod, "DoNotSchedule")) {
    auto domain = label_of(*node.node, constraint.key);
    if (!domain) return SpreadVerdict::missing_label;
    auto counts = domains(pod, constraint, cluster);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const auto& [name, count] : counts) least = std::min(least, count);
    if (counts.empty() || int64_t(counts.size()) < constraint.min_domains) least = 0;
    auto here = counts.find(*domain);
    int64_t with_us = (here == counts.end() ? 0 : here->second) + constraint.selector.matches(pod);
    if (with_us - least > constraint.max_skew) return SpreadVerdict::skewed;
  }
  return SpreadVerdict::fits;
}

int64_t node_preference(const view::Pod& pod, const Object& node) {
  int64_t score = 0;
  auto terms = pod.spec().affinity().node_affinity().preferred_during_scheduling_ignored_during_execution();
  for (view::PreferredSchedulingTerm term : terms)
    if (node_matches(term.preference(), node)) score += term.weight();
  return score;
}

int64_t pod_preference(const Object& pod, const NodeInfo& node, const Cluster& cluster, const NamespaceLabels& labels) {
  view::Affinity affinity = view::Pod(pod).spec().affinity();
  int64_t score = 0;
  auto weigh = [&](auto terms, int64_t sign) {
    for (view::WeightedPodAffinityTerm weighted : terms) {
      Term term = term_of(weighted.pod_affinity_term(), pod);
      for_each_pod(cluster, [&](const Object& other, const Object& where) {
        if (same_domain(*node.node, where, term.topology_key) && term.matches(other, labels))
          score += sign * weighted.weight();
      });
    }
  };
  weigh(affinity.pod_affinity().preferred_during_scheduling_ignored_during_execution(), 1);
  weigh(affinity.pod_anti_affinity().preferred_during_scheduling_ignored_during_execution(), -1);
  return score;
}

int64_t spread_preference(const Object& pod, const NodeInfo& node, const Cluster& cluster) {
  int64_t score = 0;
  for (const Constraint& constraint : constraints_of(pod, "ScheduleAnyway")) {
    auto domain = label_of(*node.node, constraint.key);
    if (!domain) continue;
    auto counts = domains(pod, constraint, cluster);
    auto here = counts.find(*domain);
    if (here != counts.end()) score -= here->second;
  }
  return score;
}

}  // namespace coracle::scheduler
