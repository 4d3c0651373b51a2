// SPDX-License-Identifier: Apache-2.0
// Filters and scores. See decide.h.
#include "daemon/scheduler/decide.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "daemon/placement/placement.h"
#include "daemon/scheduler/affinity.h"
#include "store/object/quantity.h"

namespace coracle::scheduler {

using placement::node_wanted;
using placement::tolerates;

namespace {

// ---- filters: each names its reason, or nothing ----

using Filter = Verdict (*)(const Object& pod, const NodeInfo& node, const Cluster& cluster,
                           const NamespaceLabels& labels);

Verdict no(std::string reason, bool for_good) { return {{std::move(reason)}, for_good}; }

Verdict unschedulable(const Object& pod, const NodeInfo& node, const Cluster&, const NamespaceLabels&) {
  if (!view::Node(*node.node).spec().unschedulable()) return {};
  static const json::value taint = {{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}};
  if (tolerates(view::Pod(pod), view::Taint(taint))) return {};
  return no("node(s) were unschedulable", true);
}

Verdict tainted(const Object& pod, const NodeInfo& node, const Cluster&, const NamespaceLabels&) {
  for (view::Taint taint : view::Node(*node.node).spec().taints()) {
    bool repels = taint.effect() == "NoSchedule" || taint.effect() == "NoExecute";
    if (repels && !tolerates(view::Pod(pod), taint))
      return no("node(s) had untolerated taint {" + std::string(taint.key()) + ": " + std::string(taint.value()) + "}",
                true);
  }
  return {};
}

Verdict not_wanted(const Object& pod, const NodeInfo& node, const Cluster&, const NamespaceLabels&) {
  if (node_wanted(view::Pod(pod), *node.node)) return {};
  return no("node(s) didn't match Pod's node affinity/selector", true);
}

Verdict ports_taken(const Object& pod, const NodeInfo& node, const Cluster&, const NamespaceLabels&) {
  for (const HostPort& wanted : host_ports(view::Pod(pod)))
    for (const auto& [uid, placed] : node.pods)
      for (const HostPort& taken : placed.ports)
        if (taken.clashes(wanted)) return no("node(s) didn't have free ports for the requested pod ports", false);
  return {};
}

Verdict too_small(const Object& pod, const NodeInfo& node, const Cluster&, const NamespaceLabels&) {
  Verdict verdict;
  bool never = false;
  int64_t pods_max = node.allocatable.get("pods");
  if (pods_max > 0 && int64_t(node.pods.size()) + 1 > pods_max) verdict.reasons.push_back("Too many pods");
  Resources wanted = requests_of(view::Pod(pod));
  for (const auto& [name, amount] : wanted.all()) {
    if (amount == 0 || name == "pods") continue;
    if (amount > node.allocatable.get(name) - node.requested.get(name))
      verdict.reasons.push_back("Insufficient " + name);
    never |= amount > node.allocatable.get(name);
  }
  verdict.for_good = never;
  return verdict;
}

Verdict skewed(const Object& pod, const NodeInfo& node, const Cluster& cluster, const NamespaceLabels&) {
  switch (check_spread(pod, node, cluster)) {
    case SpreadVerdict::fits:
      return {};
    case SpreadVerdict::skewed:
      return no("node(s) didn't match pod topology spread constraints", false);
    case SpreadVerdict::missing_label:
      return no("node(s) didn't match pod topology spread constraints (missing required label)", true);
  }
  return {};
}

Verdict bad_company(const Object& pod, const NodeInfo& node, const Cluster& cluster, const NamespaceLabels& labels) {
  switch (check_pod_affinity(pod, node, cluster, labels)) {
    case PodAffinityVerdict::fits:
      return {};
    case PodAffinityVerdict::affinity:
      return no("node(s) didn't match pod affinity rules", true);
    case PodAffinityVerdict::anti_affinity:
      return no("node(s) didn't match pod anti-affinity rules", false);
    case PodAffinityVerdict::existing_anti_affinity:
      return no("node(s) didn't satisfy existing pods anti-affinity rules", false);
  }
  return {};
}

constexpr Filter kFilters[] = {unschedulable, tainted, not_wanted, ports_taken, too_small, skewed, bad_company};

// ---- scores ----

// A pod that asks for nothing still uses something.
Resources scoring_requests(const Object& pod) {
  Resources requests = requests_of(view::Pod(pod));
  if (requests.get("cpu") == 0) requests.set("cpu", 100);
  if (requests.get("memory") == 0) requests.set("memory", 200 << 20);
  return requests;
}

double used_share(const Object& pod, const NodeInfo& node, std::string_view resource) {
  int64_t all = node.allocatable.get(resource);
  if (all <= 0) return 1;
  return std::min(1.0, double(node.requested.get(resource) + scoring_requests(pod).get(resource)) / double(all));
}

int64_t intolerable(const Object& pod, const NodeInfo& node) {
  int64_t count = 0;
  for (view::Taint taint : view::Node(*node.node).spec().taints())
    count += taint.effect() == "PreferNoSchedule" && !tolerates(view::Pod(pod), taint);
  return count;
}

// Stretches raw scores over 0 to 100.
std::vector<int64_t> normal(std::vector<int64_t> scores) {
  auto [least, most] = std::minmax_element(scores.begin(), scores.end());
  int64_t low = *least, span = *most - *least;
  for (int64_t& score : scores) score = span == 0 ? 0 : (score - low) * 100 / span;
  return scores;
}

const NodeInfo& best(const Object& pod, const std::vector<const NodeInfo*>& feasible, const Cluster& cluster,
                     const NamespaceLabels& labels) {
  if (feasible.size() == 1) return *feasible[0];
  std::vector<int64_t> total(feasible.size(), 0);
  auto add = [&](int64_t weight, bool normalized, auto score) {
    std::vector<int64_t> scores;
    for (const NodeInfo* node : feasible) scores.push_back(score(*node));
    if (normalized) scores = normal(std::move(scores));
    for (size_t i = 0; i < scores.size(); ++i) total[i] += weight * scores[i];
  };
  add(3, true, [&](const NodeInfo& node) { return -intolerable(pod, node); });
  add(2, true, [&](const NodeInfo& node) { return node_preference(view::Pod(pod), *node.node); });
  add(2, true, [&](const NodeInfo& node) { return pod_preference(pod, node, cluster, labels); });
  add(2, true, [&](const NodeInfo& node) { return spread_preference(pod, node, cluster); });
  add(1, false, [&](const NodeInfo& node) { return least_allocated(pod, node); });
  add(1, false, [&](const NodeInfo& node) { return balanced_allocation(pod, node); });
  add(1, false, [&](const NodeInfo& node) { return image_locality(pod, node); });
  return *feasible[size_t(std::max_element(total.begin(), total.end()) - total.begin())];
}

std::string summary(size_t nodes, const std::map<std::string, size_t>& reasons) {
  std::string out = "0/" + std::to_string(nodes) + " nodes are available: ";
  std::set<std::string> parts;
  for (const auto& [reason, count] : reasons) parts.insert(std::to_string(count) + " " + reason);
  bool first = true;
  for (const std::string& part : parts) out.append(std::exchange(first, false) ? "" : ", ").append(part);
  return out + ".";
}

}  // namespace

Verdict filter(const Object& pod, const NodeInfo& node, const Cluster& cluster, const NamespaceLabels& labels) {
  for (Filter filter : kFilters)
    if (Verdict verdict = filter(pod, node, cluster, labels); !verdict.fits()) return verdict;
  return {};
}

int64_t least_allocated(const Object& pod, const NodeInfo& node) {
  double free = (1 - used_share(pod, node, "cpu")) + (1 - used_share(pod, node, "memory"));
  return int64_t(free * 50);
}

int64_t balanced_allocation(const Object& pod, const NodeInfo& node) {
  double apart = std::abs(used_share(pod, node, "cpu") - used_share(pod, node, "memory")) / 2;
  return int64_t((1 - apart) * 100);
}

int64_t image_locality(const Object& pod, const NodeInfo& node) {
  constexpr int64_t kMin = 23 << 20, kMaxPerContainer = int64_t(1000) << 20;
  int64_t present = 0, containers = 0;
  for (view::Container container : view::Pod(pod).spec().containers()) {
    ++containers;
    for (view::ContainerImage image : view::Node(*node.node).status().images()) {
      auto names = image.names();
      bool here =
          std::any_of(names.begin(), names.end(), [&](std::string_view name) { return name == container.image(); });
      if (here) present += image.size_bytes();
    }
  }
  int64_t most = kMaxPerContainer * std::max<int64_t>(containers, 1);
  return 100 * (std::clamp(present, kMin, most) - kMin) / (most - kMin);
}

Decision decide(const Object& pod, const Cluster& cluster, const NamespaceLabels& labels) {
  std::vector<const NodeInfo*> feasible;
  std::map<std::string, size_t> reasons;
  size_t nodes = 0, for_good = 0;
  for (const auto& [name, node] : cluster.nodes()) {
    if (!node.node) continue;
    ++nodes;
    Verdict verdict = filter(pod, node, cluster, labels);
    if (verdict.fits()) feasible.push_back(&node);
    for (const std::string& reason : verdict.reasons) ++reasons[reason];
    for_good += !verdict.fits() && verdict.for_good;
  }
  if (!feasible.empty()) return {best(pod, feasible, cluster, labels).node->name(), ""};
  if (nodes == 0) return {"", "no nodes available to schedule pods"};
  std::map<std::string, size_t> preemption;
  if (for_good) preemption["Preemption is not helpful for scheduling"] = for_good;
  if (nodes > for_good) preemption["No preemption victims found for incoming pod"] = nodes - for_good;
  return {"", summary(nodes, reasons) + " preemption: " + summary(nodes, preemption)};
}

}  // namespace coracle::scheduler
