// SPDX-License-Identifier: Apache-2.0
// NodeResourcesFit and NodeResourcesBalancedAllocation: whether the resources suffice, how much is used afterwards, and how
// evenly. Source: Kubernetes "Resource Bin Packing", NodeResourcesFitArgs and NodeResourcesBalancedAllocationArgs.
#include <algorithm>
#include <cmath>

#include "daemon/scheduler/plugins/plugins.h"

namespace coracle::scheduler {
namespace {

// A resource for scores, with an index, so that names are not compared for each node.
struct Scored {
  std::string name;
  int64_t weight, asked;
  enum class Which : uint8_t { cpu, memory, ephemeral, other } which;
};

struct Use {
  int64_t requested = 0, allocatable = 0;  // including the pod; 0 of 0 if it is ignored
};

struct NodeResourcesScoreState : CycleState::State {
  std::vector<Scored> resources;
  NodeMemo* memo = nullptr;  // the score of each node for these requests
};

std::string weights_text(const std::vector<ResourceWeight>& resources) {
  std::string text;
  for (const ResourceWeight& one : resources) text.append(" ").append(one.name).append("*").append(std::to_string(one.weight));
  return text;
}

// `question` identifies the score and its parameters.
std::unique_ptr<NodeResourcesScoreState> score_state(CycleState& cycle, std::string question,
                                                     const std::vector<ResourceWeight>& resources, bool with_defaults) {
  const PodInfo& pod = *cycle.info;
  auto state = std::make_unique<NodeResourcesScoreState>();
  for (const ResourceWeight& one : resources) {
    Scored scored{one.name, one.weight, pod.requests.exact.get(one.name), Scored::Which::other};
    if (one.name == "cpu") scored.which = Scored::Which::cpu;
    if (one.name == "memory") scored.which = Scored::Which::memory;
    if (one.name == "ephemeral-storage") scored.which = Scored::Which::ephemeral;
    if (with_defaults && one.name == "cpu") scored.asked = pod.requests.scored_cpu_milli;
    if (with_defaults && one.name == "memory") scored.asked = pod.requests.scored_memory;
    question.append(" ").append(std::to_string(scored.asked));
    state->resources.push_back(std::move(scored));
  }
  state->memo = &cycle.cluster.memo(question);
  return state;
}

inline Use use_of(const Scored& resource, const NodeInfo& node, bool with_defaults) {
  switch (resource.which) {
    case Scored::Which::cpu:
      return {(with_defaults ? node.scored_cpu_milli : node.requested.cpu_milli) + resource.asked, node.allocatable.cpu_milli};
    case Scored::Which::memory:
      return {(with_defaults ? node.scored_memory : node.requested.memory) + resource.asked, node.allocatable.memory};
    case Scored::Which::ephemeral: return {node.requested.ephemeral + resource.asked, node.allocatable.ephemeral};
    case Scored::Which::other: break;
  }
  if (resource.asked == 0 || !node.allocatable.has(resource.name)) return {};
  return {node.requested.get(resource.name) + resource.asked, node.allocatable.get(resource.name)};
}

int64_t least_allocated(Use use) {
  return use.requested > use.allocatable ? 0 : (use.allocatable - use.requested) * kNodeScoreMax / use.allocatable;
}

int64_t most_allocated(Use use) { return std::min(use.requested, use.allocatable) * kNodeScoreMax / use.allocatable; }

// Interpolates linearly between the points of `shape`, whose scores are scaled to 100; constant before the first and after the
// last.
int64_t along(const std::vector<std::pair<int64_t, int64_t>>& shape, int64_t utilization) {
  for (size_t i = 0; i < shape.size(); i++) {
    if (utilization > shape[i].first) continue;
    if (i == 0) return shape[0].second;
    auto [x0, y0] = shape[i - 1];
    auto [x1, y1] = shape[i];
    return y0 + (y1 - y0) * (utilization - x0) / (x1 - x0);
  }
  return shape.empty() ? 0 : shape.back().second;
}

class NodeResourcesFit : public Plugin {
 public:
  explicit NodeResourcesFit(FitArgs args) : args_(std::move(args)) {
    question_ = "fit " + std::to_string(int(args_.strategy)) + weights_text(args_.resources);
    for (auto& [utilization, score] : args_.shape) {
      score *= kNodeScoreMax / 10;
      question_.append(" ").append(std::to_string(utilization)).append("=").append(std::to_string(score));
    }
  }
  std::string_view name() const override { return "NodeResourcesFit"; }
  uint32_t points() const override { return pre_filter_point | filter_point | pre_score_point | score_point; }

  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    const Amounts &asked = cycle.info->requests.exact, &all = node.allocatable, &used = node.requested;
    bool enough = int64_t(node.pods.size()) < node.pods_max && asked.cpu_milli <= all.cpu_milli - used.cpu_milli &&
                  asked.memory <= all.memory - used.memory && asked.ephemeral <= all.ephemeral - used.ephemeral;
    if (enough && asked.others().empty()) return Answer::success;
    return check(asked, all, used, node.pods.size(), node.pods_max, why);
  }

  Answer pre_score(CycleState& cycle, const std::vector<const NodeInfo*>&) const override {
    cycle.score_state[index] = score_state(cycle, question_, args_.resources, true);
    return Answer::success;
  }
  void score(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    const auto& state = static_cast<const NodeResourcesScoreState&>(*cycle.score_state[index]);
    score_each(scores, [&](const NodeInfo& node) {
      return state.memo->ask(node, node.usage_since, [&] { return fit(state.resources, node); });
    });
  }

  bool could_help(const ClusterEvent& event, const PodInfo& pod, Cluster&) const override {
    const Amounts& asked = pod.requests.exact;
    if (event.is(ClusterEvent::node_added | ClusterEvent::node_allocatable))
      return check(asked, event.node->allocatable, {}, 0, event.node->pods_max, nullptr) == Answer::success;
    return event.is(ClusterEvent::pod_removed | ClusterEvent::pod_shrunk);  // at least its place in the pod count
  }

 private:
  int64_t fit(const std::vector<Scored>& resources, const NodeInfo& node) const {
    bool by_shape = args_.strategy == FitArgs::Strategy::requested_to_capacity_ratio;
    int64_t sum = 0, weights = 0;
    for (const Scored& resource : resources) {
      Use use = use_of(resource, node, true);
      if (use.allocatable == 0) continue;
      int64_t one = score_of(use);
      if (by_shape && one == 0) continue;
      sum += one * resource.weight;
      weights += resource.weight;
    }
    if (weights == 0) return 0;
    return by_shape ? int64_t(std::round(double(sum) / double(weights))) : sum / weights;
  }

  int64_t score_of(Use use) const {
    switch (args_.strategy) {
      case FitArgs::Strategy::least_allocated: return least_allocated(use);
      case FitArgs::Strategy::most_allocated: return most_allocated(use);
      case FitArgs::Strategy::requested_to_capacity_ratio: break;
    }
    return along(args_.shape, use.requested > use.allocatable ? 100 : use.requested * 100 / use.allocatable);
  }

  Answer check(const Amounts& asked, const Amounts& allocatable, const Amounts& requested, size_t pods, int64_t pods_max,
               Reasons* why) const {
    Answer code = Answer::success;
    if (int64_t(pods) + 1 > pods_max) {
      code = Answer::unschedulable;
      if (why)
        why->push_back({"Too many pods", std::to_string(pods) + " of " + std::to_string(pods_max) + " pods", "one pod less"});
      else return code;
    }
    if (asked.is_zero()) return code;
    auto look = [&](std::string_view name, int64_t want, int64_t all, int64_t used) {
      if (want == 0 || want <= all - used) return;
      code = code == Answer::unresolvable || want > all ? Answer::unresolvable : Answer::unschedulable;
      if (!why) return;
      int64_t missing = want - (all - used);
      why->push_back({"Insufficient " + std::string(name),
                      std::string(name) + " requested " + amount_text(name, want) + ", free " +
                          amount_text(name, std::max<int64_t>(all - used, 0)) + " of " + amount_text(name, all),
                      amount_text(name, missing) + " more " + std::string(name)});
    };
    look("cpu", asked.cpu_milli, allocatable.cpu_milli, requested.cpu_milli);
    look("memory", asked.memory, allocatable.memory, requested.memory);
    look("ephemeral-storage", asked.ephemeral, allocatable.ephemeral, requested.ephemeral);
    for (const auto& [name, want] : asked.others())
      if (!ignored(name)) look(name, want, allocatable.get(name), requested.get(name));
    return code;
  }

  bool ignored(const std::string& resource) const {
    size_t slash = resource.find('/');
    if (slash == resource.npos) return false;
    return args_.ignored_resources.contains(resource) || args_.ignored_groups.contains(resource.substr(0, slash));
  }

  FitArgs args_;
  std::string question_;
};

class BalancedAllocation : public Plugin {
 public:
  explicit BalancedAllocation(BalancedAllocationArgs args)
      : args_(std::move(args)), question_("balance" + weights_text(args_.resources)) {}
  std::string_view name() const override { return "NodeResourcesBalancedAllocation"; }
  uint32_t points() const override { return pre_score_point | score_point; }

  Answer pre_score(CycleState& cycle, const std::vector<const NodeInfo*>&) const override {
    auto state = score_state(cycle, question_, args_.resources, false);
    if (std::ranges::all_of(state->resources, [](const Scored& one) { return one.asked == 0; })) return Answer::skip;
    cycle.score_state[index] = std::move(state);
    return Answer::success;
  }
  void score(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    const auto& state = static_cast<const NodeResourcesScoreState&>(*cycle.score_state[index]);
    score_each(scores, [&](const NodeInfo& node) {
      return state.memo->ask(node, node.usage_since, [&] { return balance(state.resources, node); });
    });
  }

 private:
  static int64_t balance(const std::vector<Scored>& resources, const NodeInfo& node) {
    constexpr size_t kResourcesMax = 100;  // the limit of validation
    double shares[kResourcesMax], sum = 0;
    size_t count = 0;
    for (const Scored& resource : resources) {
      Use use = use_of(resource, node, false);
      if (use.allocatable == 0 || count == kResourcesMax) continue;
      sum += shares[count++] = std::min(double(use.requested) / double(use.allocatable), 1.0);
    }
    double deviation = 0;
    if (count == 2) deviation = std::abs((shares[0] - shares[1]) / 2);
    if (count > 2) {
      double mean = sum / double(count), squares = 0;
      for (size_t i = 0; i < count; i++) squares += (shares[i] - mean) * (shares[i] - mean);
      deviation = std::sqrt(squares / double(count));
    }
    return int64_t((1 - deviation) * double(kNodeScoreMax));
  }

  BalancedAllocationArgs args_;
  std::string question_;
};

}  // namespace

std::unique_ptr<Plugin> make_node_resources_fit(FitArgs args) { return std::make_unique<NodeResourcesFit>(std::move(args)); }
std::unique_ptr<Plugin> make_balanced_allocation(BalancedAllocationArgs args) {
  return std::make_unique<BalancedAllocation>(std::move(args));
}

}  // namespace coracle::scheduler
