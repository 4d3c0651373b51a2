// SPDX-License-Identifier: Apache-2.0
// Calls the plugins of a profile in order. See framework.h.
#include "daemon/scheduler/framework.h"

#include <algorithm>

namespace coracle::scheduler {
namespace {

constexpr size_t kNodesMin = 100;  // as in Kubernetes: at least that many nodes are searched
constexpr size_t kPercentageMin = 5;

inline Answer ask_filters(const CycleState& cycle, const NodeInfo& node) {  // inline, because it is called for each node and pod
  for (const Plugin* plugin : cycle.filters) {
    Answer code = plugin->filter(cycle, node, nullptr);
    if (code != Answer::success) return code;
  }
  return Answer::success;
}

}  // namespace

bool ClusterEvent::has_any_claim(const std::vector<std::string>& names) const {
  if (pod->claims.empty() || names.empty()) return false;
  if (!claim_names) claim_names.emplace(pod->claims.begin(), pod->claims.end());
  return std::ranges::any_of(names, [&](const std::string& name) { return claim_names->contains(name); });
}

void normalize_to_max(std::vector<NodeScore>& scores, bool reverse) {
  int64_t most = 0;
  for (const NodeScore& one : scores) most = std::max(most, one.score);
  for (NodeScore& one : scores) {
    if (most == 0) {
      if (reverse) one.score = kNodeScoreMax;
      continue;
    }
    one.score = kNodeScoreMax * one.score / most;
    if (reverse) one.score = kNodeScoreMax - one.score;
  }
}

Framework::Framework(std::string scheduler_name, PluginLists lists, int percentage)
    : scheduler_name_(std::move(scheduler_name)), plugins_(std::move(lists.plugins)), percentage_(percentage) {
  for (size_t i = 0; i < plugins_.size(); i++) plugins_[i]->index = i;
  auto all_at = [&](Plugin::Point point) {
    std::vector<const Plugin*> out;
    for (const auto& enabled : lists.at[point]) out.push_back(plugins_[enabled.plugin].get());
    return out;
  };
  auto one_at = [&](Plugin::Point point) { return lists.at[point].empty() ? nullptr : all_at(point).front(); };
  pre_enqueue_ = all_at(Plugin::pre_enqueue_point);
  pre_filters_ = all_at(Plugin::pre_filter_point);
  filters_ = all_at(Plugin::filter_point);
  before_bind_ = all_at(Plugin::pre_bind_point);
  queue_sort_ = one_at(Plugin::queue_sort_point);
  post_filter_ = one_at(Plugin::post_filter_point);
  bind_ = one_at(Plugin::bind_point);
  auto prepare = all_at(Plugin::pre_score_point);
  for (const auto& enabled : lists.at[Plugin::score_point]) {
    const Plugin* plugin = plugins_[enabled.plugin].get();
    scorers_.push_back({plugin, enabled.weight, std::ranges::count(prepare, plugin) > 0});
  }
}

bool Framework::could_help(const PluginSet& refused, const ClusterEvent& event, const PodInfo& pod, Cluster& cluster) const {
  for (size_t i = 0; i < plugins_.size(); i++)
    if (refused[i] && plugins_[i]->could_help(event, pod, cluster)) return true;
  return false;
}

Verdict Framework::pre_enqueue(const PodInfo& pod) const {
  for (const Plugin* plugin : pre_enqueue_) {
    Verdict verdict{.plugin = plugin};
    verdict.code = plugin->pre_enqueue(pod, verdict.reasons);
    if (verdict.code != Answer::success) return verdict;
  }
  return {};
}

bool Framework::sorts_before(const PodInfo& a, const PodInfo& b) const { return queue_sort_ && queue_sort_->sorts_before(a, b); }

Verdict Framework::pre_filter(CycleState& cycle) const {
  PluginSet skips;
  for (const Plugin* plugin : pre_filters_) {
    bool narrowed = cycle.only.has_value();
    Verdict verdict{.plugin = plugin};
    verdict.code = plugin->pre_filter(cycle, verdict.reasons);
    if (verdict.code == Answer::skip) skips.set(plugin->index);
    else if (verdict.code != Answer::success) return verdict;
    if (!narrowed && cycle.only) cycle.only_because = plugin->name();
  }
  cycle.filters.clear();
  cycle.filters.reserve(filters_.size());
  for (const Plugin* plugin : filters_)
    if (!skips[plugin->index]) cycle.filters.push_back(plugin);
  return {};
}

Answer Framework::filter(const CycleState& cycle, const NodeInfo& node) const { return ask_filters(cycle, node); }

Verdict Framework::why_not(const CycleState& cycle, const NodeInfo& node) const {
  for (const Plugin* plugin : cycle.filters) {
    Verdict verdict{.plugin = plugin};
    verdict.code = plugin->filter(cycle, node, &verdict.reasons);
    if (verdict.code != Answer::success) return verdict;
  }
  return {};
}

namespace {

std::vector<PodInfoPtr> nominated_before(const PodInfo& pod, const std::string& node, const Nominations& nominations) {
  std::vector<PodInfoPtr> out;
  auto found = nominations.find(node);
  if (found == nominations.end()) return out;
  for (const PodInfoPtr& other : found->second)
    if (other->priority >= pod.priority && other->uid != pod.uid) out.push_back(other);
  return out;
}

}  // namespace

Verdict Framework::why_not(const CycleState& cycle, const NodeInfo& node, const Nominations& nominations) const {
  auto others = nominated_before(*cycle.info, node.name, nominations);
  if (!others.empty()) {
    WhatIf what_if(cycle.cluster);
    for (const PodInfoPtr& other : others) what_if.place(other, node.name);
    CycleState with(cycle.info, cycle.cluster, cycle.lister);
    Verdict verdict = pre_filter(with);
    if (verdict.code == Answer::success) verdict = why_not(with, node);
    if (verdict.code != Answer::success) return verdict;
  }
  return why_not(cycle, node);
}

bool Framework::fits(const CycleState& cycle, const NodeInfo& node, const Nominations& nominations) const {
  if (nominations.empty() || !nominations.contains(node.name)) return filter(cycle, node) == Answer::success;
  return why_not(cycle, node, nominations).code == Answer::success;
}

size_t Framework::enough(size_t nodes) const {
  if (nodes < kNodesMin || percentage_ >= 100) return nodes;
  size_t percentage = size_t(percentage_);
  if (percentage == 0) percentage = nodes / 125 >= 50 - kPercentageMin ? kPercentageMin : 50 - nodes / 125;
  return std::max(nodes * percentage / 100, kNodesMin);
}

Framework::Placement Framework::place(CycleState& cycle, const Nominations& nominations, size_t& start) const {
  Placement placement;
  const auto& nodes = cycle.cluster.nodes();
  Verdict verdict = pre_filter(cycle);
  if (verdict.code != Answer::success) {
    placement.refused =
        verdict.reasons.empty() ? Reason{std::string(verdict.plugin->name()), "", ""} : std::move(verdict.reasons.front());
    placement.refused_code = verdict.code;
    placement.refused_by.set(verdict.plugin->index);
    return placement;
  }
  std::string nominated(cycle.pod.status().nominated_node_name());
  if (const NodeInfo* node = nominated.empty() ? nullptr : cycle.cluster.node(nominated);
      node && (!cycle.only || std::ranges::count(*cycle.only, nominated)) && fits(cycle, *node, nominations)) {
    placement.node = node;
    return placement;
  }
  std::vector<const NodeInfo*> feasible;
  if (cycle.only) {
    for (const std::string& name : *cycle.only)
      if (const NodeInfo* node = cycle.cluster.node(name); node && fits(cycle, *node, nominations)) feasible.push_back(node);
  } else {
    size_t want = enough(nodes.size());
    feasible.reserve(want);
    if (start >= nodes.size()) start = 0;
    const bool has_nominated = !nominations.empty();
    for (size_t looked_at = 0; looked_at < nodes.size() && feasible.size() < want; looked_at++) {
      const NodeInfo* node = nodes[start];
      if (has_nominated ? fits(cycle, *node, nominations) : ask_filters(cycle, *node) == Answer::success)
        feasible.push_back(node);
      if (++start == nodes.size()) start = 0;
    }
  }
  if (feasible.size() < 2) {
    if (!feasible.empty()) placement.node = feasible.front();
    return placement;
  }
  std::vector<int64_t> totals(feasible.size(), 0);
  std::vector<NodeScore> scores;
  scores.reserve(feasible.size());
  for (const NodeInfo* node : feasible) scores.push_back({node, 0});
  for (const Scorer& scorer : scorers_) {
    if (scorer.prepares && scorer.plugin->pre_score(cycle, feasible) == Answer::skip) continue;
    scorer.plugin->score(cycle, scores);
    scorer.plugin->normalize(cycle, scores);
    for (size_t i = 0; i < feasible.size(); i++) totals[i] += scorer.weight * scores[i].score;
  }
  placement.node = feasible[size_t(std::ranges::max_element(totals) - totals.begin())];
  return placement;
}

std::vector<Framework::PluginScore> Framework::score(CycleState& cycle, const std::vector<const NodeInfo*>& nodes) const {
  std::vector<PluginScore> out;
  std::vector<NodeScore> scores;
  for (const NodeInfo* node : nodes) scores.push_back({node, 0});
  for (const Scorer& scorer : scorers_) {
    PluginScore one{scorer.plugin, scorer.weight, std::vector<int64_t>(nodes.size(), 0), std::vector<int64_t>(nodes.size(), 0)};
    if (!scorer.prepares || scorer.plugin->pre_score(cycle, nodes) != Answer::skip) {
      scorer.plugin->score(cycle, scores);
      for (size_t i = 0; i < nodes.size(); i++) one.raw[i] = scores[i].score;
      scorer.plugin->normalize(cycle, scores);
      for (size_t i = 0; i < nodes.size(); i++) one.normalized[i] = scores[i].score;
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<Write> Framework::before_bind(const CycleState& cycle, const NodeInfo& node) const {
  std::vector<Write> out;
  for (const Plugin* plugin : before_bind_) std::ranges::move(plugin->before_bind(cycle, node), std::back_inserter(out));
  return out;
}

json::value Framework::binding(const PodInfo& pod, const std::string& node) const { return bind_->binding(pod, node); }

}  // namespace coracle::scheduler
