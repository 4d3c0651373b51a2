// SPDX-License-Identifier: Apache-2.0
// DefaultPreemption: a pod that fits nowhere may preempt pods of lower priority, as few and as unimportant as possible.
//   candidate nodes ─▶ does it fit without all lower-priority pods? ─▶ reprieve pods, highest priority first, while it still
//   fits ─▶ the node whose victims matter least
// Source: Kubernetes "Pod Priority and Preemption", DefaultPreemptionArgs.
#include <algorithm>
#include <limits>
#include <optional>

#include "daemon/scheduler/decide.h"
#include "daemon/scheduler/plugins/plugins.h"
#include "store/object/selector_cache.h"

namespace coracle::scheduler {
namespace {

struct Candidate {
  const NodeInfo* node;
  std::vector<PodInfoPtr> victims;  // highest priority first
  int64_t violations = 0;           // of PodDisruptionBudgets
};

bool more_important(const PodInfoPtr& a, const PodInfoPtr& b) {
  return a->priority != b->priority ? a->priority > b->priority : a->started < b->started;
}

// The remaining disruptions of each budget, and which pods would violate one.
class Budgets {
 public:
  explicit Budgets(const Lister& lister) : lister_(lister) {}
  // In the given order: each pod is charged to its budgets after the ones before it.
  std::vector<bool> violations(const std::vector<PodInfoPtr>& pods) {
    std::map<std::string, int64_t> left;
    std::vector<bool> out;
    for (const PodInfoPtr& info : pods) {
      bool violates = false;
      ObjectPtr pod = info->object->awake();
      for (const auto& [budget, selector] : of(info->key.ns)) {
        if (!selector || !selector->matches(*pod) ||
            view::PodDisruptionBudget(*budget).status().disrupted_pods().contains(info->key.name))
          continue;
        auto one =
            left.try_emplace(budget->key().text(), view::PodDisruptionBudget(*budget).status().disruptions_allowed()).first;
        violates |= --one->second < 0;
      }
      out.push_back(violates);
    }
    return out;
  }

 private:
  using Budget = std::pair<ObjectPtr, std::optional<LabelSelector>>;
  const std::vector<Budget>& of(const std::string& ns) {
    auto [found, fresh] = budgets_.try_emplace(ns);
    if (fresh)
      for (const ObjectPtr& budget : lister_.budgets(ns)) found->second.emplace_back(budget, selector_in_spec(*budget));
    return found->second;
  }
  const Lister& lister_;
  std::map<std::string, std::vector<Budget>> budgets_;
};

class DefaultPreemption : public Plugin {
 public:
  explicit DefaultPreemption(PreemptionArgs args) : args_(args) {}
  std::string_view name() const override { return "DefaultPreemption"; }
  uint32_t points() const override { return post_filter_point; }

  PostFilterResult post_filter(const Framework& framework, CycleState& cycle, const Nominations& nominations,
                               const std::vector<std::pair<const NodeInfo*, Answer>>& verdicts) const override {
    PostFilterResult result;
    result.message = not_eligible(cycle, verdicts);
    result.eligible = result.message.empty();
    if (!result.eligible) return result;
    ReasonCount reasons;
    std::vector<const NodeInfo*> might_help;
    for (const auto& [node, code] : verdicts) {
      if (code == Answer::unresolvable) reasons.add("Preemption is not helpful for scheduling");
      else might_help.push_back(node);
    }
    size_t want = std::max(might_help.size() * size_t(args_.candidates_min_percentage) / 100, size_t(args_.candidates_min));
    std::vector<Candidate> candidates;
    Budgets budgets(cycle.lister);
    for (const NodeInfo* node : might_help) {
      auto candidate = try_node(framework, cycle, nominations, *node, budgets, reasons);
      if (candidate) candidates.push_back(std::move(*candidate));
      if (candidates.size() >= want) break;
    }
    if (candidates.empty()) {
      result.message = reasons.text(verdicts.size());
      return result;
    }
    Candidate& best = *std::min_element(candidates.begin(), candidates.end(), matters_less);
    result.node = best.node->name;
    result.victims = std::move(best.victims);
    return result;
  }

 private:
  static std::string not_eligible(const CycleState& cycle, const std::vector<std::pair<const NodeInfo*, Answer>>& verdicts) {
    if (cycle.pod.spec().preemption_policy() == "Never") return "not eligible due to preemptionPolicy=Never.";
    std::string_view nominated = cycle.pod.status().nominated_node_name();
    for (const auto& [node, code] : verdicts) {
      if (nominated.empty() || node->name != nominated || code == Answer::unresolvable) continue;
      for (const PodInfoPtr& other : node->pods)
        if (other->priority < cycle.info->priority && other->deleting && leaves_by_preemption(*other))
          return "not eligible due to a terminating pod on the nominated node.";
    }
    return "";
  }
  static bool leaves_by_preemption(const PodInfo& info) {
    ObjectPtr pod = info.object->awake();
    for (view::PodCondition condition : view::Pod(*pod).status().conditions())
      if (condition.type() == "DisruptionTarget")
        return condition.status() == "True" && condition.reason() == "PreemptionByScheduler";
    return false;
  }

  static std::optional<Candidate> try_node(const Framework& framework, const CycleState& cycle, const Nominations& nominations,
                                           const NodeInfo& node, Budgets& budgets, ReasonCount& reasons) {
    std::vector<PodInfoPtr> lesser;
    for (const PodInfoPtr& other : node.pods)
      if (other->priority < cycle.info->priority) lesser.push_back(other);
    if (lesser.empty()) {
      reasons.add("No preemption victims found for incoming pod");
      return std::nullopt;
    }
    WhatIf what_if(cycle.cluster);
    for (const PodInfoPtr& other : lesser) what_if.remove(*other);
    auto verdict = [&] {
      CycleState again(cycle.info, cycle.cluster, cycle.lister);
      Verdict refused = framework.pre_filter(again);
      return refused.code != Answer::success ? refused : framework.why_not(again, node, nominations);
    };
    if (Verdict refused = verdict(); refused.code != Answer::success) {
      for (const Reason& reason : refused.reasons) reasons.add(reason.text);
      return std::nullopt;
    }
    std::ranges::stable_sort(lesser, more_important);
    std::vector<bool> violates = budgets.violations(lesser);
    Candidate candidate{&node, {}, 0};
    for (bool violating : {true, false})
      for (size_t i = 0; i < lesser.size(); i++) {
        if (violates[i] != violating) continue;
        what_if.place(lesser[i], node.name);
        if (verdict().code == Answer::success) continue;
        what_if.remove(*lesser[i]);
        candidate.victims.push_back(lesser[i]);
        candidate.violations += violating;
      }
    std::ranges::stable_sort(candidate.victims, more_important);
    return candidate;
  }

  // Kubernetes' order: fewest violated budgets, lowest highest priority of a victim, smallest sum of priorities, fewest victims,
  // latest start time of the most important victims.
  static bool matters_less(const Candidate& a, const Candidate& b) {
    auto highest = [](const Candidate& one) {
      return one.victims.empty() ? std::numeric_limits<int64_t>::min() : one.victims.front()->priority;
    };
    auto sum = [](const Candidate& one) {
      int64_t total = 0;  // offset to be positive, so that many victims with negative priority are not better than few
      for (const PodInfoPtr& victim : one.victims) total += victim->priority + std::numeric_limits<int32_t>::max() + 1ll;
      return total;
    };
    auto earliest = [&](const Candidate& one) {
      WallTime start = WallTime::max();
      for (const PodInfoPtr& victim : one.victims)
        if (victim->priority == highest(one)) start = std::min(start, victim->started);
      return start;
    };
    auto rank = [&](const Candidate& one) { return std::tuple(one.violations, highest(one), sum(one), one.victims.size()); };
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return earliest(a) > earliest(b);
  }

  PreemptionArgs args_;
};

}  // namespace

std::unique_ptr<Plugin> make_default_preemption(PreemptionArgs args) { return std::make_unique<DefaultPreemption>(args); }

}  // namespace coracle::scheduler
