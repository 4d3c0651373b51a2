// SPDX-License-Identifier: Apache-2.0
// See decide.h.
#include "daemon/scheduler/decide.h"

#include <algorithm>
#include <set>

namespace coracle::scheduler {
namespace {

std::string figures_of(const std::vector<std::pair<const NodeInfo*, Reasons>>& refusals) {
  std::string out;
  size_t named = 0, more = 0;
  for (const auto& [node, reasons] : refusals) {
    std::string figures;
    for (const Reason& reason : reasons)
      if (!reason.figures.empty()) figures.append(figures.empty() ? "" : "; ").append(reason.figures);
    if (figures.empty()) continue;
    if (named++ >= kNodesNamedMax) ++more;
    else out.append(" node ").append(node->name).append(": ").append(figures).append(".");
  }
  return more ? out + " (and " + std::to_string(more) + " more)" : out;
}

// The verdicts of all nodes, if none fits.
struct Refusals {
  std::vector<std::pair<const NodeInfo*, Answer>> codes;
  std::vector<std::pair<const NodeInfo*, Reasons>> reasons;
  PluginSet by;
  std::string summary;
};

Refusals refusals_of(const Framework& framework, CycleState& cycle, const Nominations& nominations,
                     const Framework::Placement& placement) {
  Refusals out;
  ReasonCount counted;
  const auto nodes = cycle.cluster.nodes();
  out.by = placement.refused_by;
  if (placement.refused_code != Answer::success) {
    for (const NodeInfo* node : nodes) out.codes.emplace_back(node, placement.refused_code);
    out.summary = "0/" + std::to_string(nodes.size()) + " nodes are available: " + placement.refused.text + ".";
    return out;
  }
  for (const NodeInfo* node : nodes) {
    Verdict verdict;
    if (cycle.only && !std::ranges::count(*cycle.only, node->name)) {
      verdict.code = Answer::unresolvable;
      verdict.reasons.push_back({"node(s) didn't satisfy plugin(s) [" + cycle.only_because + "]", "", ""});
      for (const Plugin* plugin : framework.filters())
        if (plugin->name() == cycle.only_because) verdict.plugin = plugin;
    } else {
      verdict = framework.why_not(cycle, *node, nominations);
    }
    if (verdict.plugin) out.by.set(verdict.plugin->index);
    for (const Reason& reason : verdict.reasons) counted.add(reason.text);
    out.codes.emplace_back(node, verdict.code);
    out.reasons.emplace_back(node, std::move(verdict.reasons));
  }
  if (cycle.only && out.by.none())  // the requested node does not exist
    for (const Plugin* plugin : framework.filters())
      if (plugin->name() == cycle.only_because) out.by.set(plugin->index);
  out.summary = counted.text(nodes.size());
  return out;
}

json::array reasons_of(const Reasons& reasons) {
  json::array out;
  for (const Reason& reason : reasons) {
    json::object one{{"text", reason.text}};
    if (!reason.figures.empty()) one["figures"] = reason.figures;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::string ReasonCount::text(size_t nodes) const {
  std::string out = "0/" + std::to_string(nodes) + " nodes are available: ";
  std::set<std::string> parts;
  for (const auto& [reason, count] : counts_) parts.insert(std::to_string(count) + " " + reason);
  const char* between = "";
  for (const std::string& part : parts) {
    out.append(between).append(part);
    between = ", ";
  }
  return out + ".";
}

Decision decide(const Framework& framework, const PodInfoPtr& pod, Cluster& cluster, const Lister& lister,
                const Nominations& nominations, size_t& start) {
  Decision decision;
  cluster.begin_decision();
  CycleState cycle(pod, cluster, lister);
  auto placement = framework.place(cycle, nominations, start);
  if (placement.node) {
    decision.node = placement.node->name;
    decision.before_bind = framework.before_bind(cycle, *placement.node);
    return decision;
  }
  if (cluster.nodes().empty()) {
    decision.message = "no nodes available to schedule pods";
    decision.refused.set();
    return decision;
  }
  Refusals refusals = refusals_of(framework, cycle, nominations, placement);
  decision.refused = refusals.by;
  decision.message = std::move(refusals.summary);
  if (framework.post_filter())
    decision.post_filter = framework.post_filter()->post_filter(framework, cycle, nominations, refusals.codes);
  if (!decision.post_filter.message.empty()) decision.message += " preemption: " + decision.post_filter.message;
  decision.message += figures_of(refusals.reasons);
  return decision;
}

json::object explain(const Framework& framework, const PodInfoPtr& pod, Cluster& cluster, const Lister& lister,
                     const Nominations& nominations) {
  cluster.begin_decision();
  WhatIf what_if(cluster);
  what_if.remove(*pod);
  const auto nodes = cluster.nodes();
  std::vector<const NodeInfo*> feasible;
  std::map<std::string, json::object> rows;
  json::array missing, cures;
  CycleState cycle(pod, cluster, lister);
  Verdict refused = framework.pre_filter(cycle);
  auto note = [&](const std::string& where, const Reasons& reasons) {
    for (const Reason& reason : reasons) {
      missing.push_back(json::string(where + reason.text + (reason.figures.empty() ? "" : " (" + reason.figures + ")")));
      if (!reason.cure.empty()) cures.push_back(json::string(where + reason.cure));
    }
  };
  if (refused.code != Answer::success) note("", refused.reasons);
  for (const NodeInfo* node : nodes) {
    json::array filters;
    bool fits = refused.code == Answer::success;
    if (!fits) filters.push_back({{"plugin", refused.plugin->name()}, {"ok", false}, {"reasons", reasons_of(refused.reasons)}});
    for (const Plugin* plugin : framework.filters()) {
      if (refused.code != Answer::success) break;
      Reasons reasons;
      bool ok = !std::ranges::count(cycle.filters, plugin) || plugin->filter(cycle, *node, &reasons) == Answer::success;
      json::object row{{"plugin", plugin->name()}, {"ok", ok}};
      if (!ok) row["reasons"] = reasons_of(reasons);
      note("node " + node->name + ": ", reasons);
      filters.push_back(std::move(row));
      fits &= ok;
    }
    if (fits && !framework.fits(cycle, *node, nominations)) {
      fits = false;
      Reasons reasons{{"its resources are reserved for a pod of higher priority that is nominated to the node", "",
                       "that pod placed elsewhere, or gone"}};
      filters.push_back({{"plugin", "nominated pods"}, {"ok", false}, {"reasons", reasons_of(reasons)}});
      note("node " + node->name + ": ", reasons);
    }
    if (fits) feasible.push_back(node);
    rows[node->name] = {{"name", node->name}, {"fits", fits}, {"filters", std::move(filters)}};
  }
  std::vector<int64_t> totals(feasible.size(), 0);
  if (!feasible.empty())
    for (const auto& one : framework.score(cycle, feasible))
      for (size_t i = 0; i < feasible.size(); i++) {
        json::object& row = rows[feasible[i]->name];
        int64_t total = one.weight * one.normalized[i];
        if (!row.contains("scores")) row["scores"] = json::array{};
        row["scores"].get_array().push_back({{"plugin", one.plugin->name()},
                                             {"raw", one.raw[i]},
                                             {"normalized", one.normalized[i]},
                                             {"weight", one.weight},
                                             {"total", total}});
        totals[i] += total;
        row["total"] = totals[i];
      }
  json::object out;
  json::array table;
  for (const NodeInfo* node : nodes) table.push_back(std::move(rows[node->name]));
  out["nodes"] = std::move(table);
  size_t start = 0;
  Decision decision = decide(framework, pod, cluster, lister, nominations, start);
  out["best"] = decision.node;
  if (!decision.node.empty()) return out;
  out["message"] = decision.message;
  out["missing"] = std::move(missing);
  if (!decision.post_filter.node.empty()) {
    json::array victims;
    for (const PodInfoPtr& victim : decision.post_filter.victims) victims.push_back(json::string(victim->key.text()));
    out["preemption"] = {{"node", decision.post_filter.node}, {"victims", std::move(victims)}};
  }
  if (nodes.empty()) cures.push_back("a node");
  out["cures"] = std::move(cures);
  return out;
}

}  // namespace coracle::scheduler
