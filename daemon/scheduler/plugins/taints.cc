// SPDX-License-Identifier: Apache-2.0
// TaintToleration: nodes reject pods that do not tolerate their taints; memory, disk and PID pressure are taints too. Source:
// Kubernetes "Taints and Tolerations".
#include "daemon/placement/placement.h"
#include "daemon/scheduler/plugins/plugins.h"

namespace coracle::scheduler {
namespace {

const json::value* untolerated(const view::Pod& pod, const json::array& taints) {
  for (const json::value& taint : taints) {
    std::string_view effect = view::Taint(taint).effect();
    if ((effect == "NoSchedule" || effect == "NoExecute") && !placement::tolerates(pod, view::Taint(taint))) return &taint;
  }
  return nullptr;
}

int64_t count_untolerated_preferences(const view::Pod& pod, const json::array& taints) {
  int64_t count = 0;
  for (const json::value& taint : taints)
    if (view::Taint(taint).effect() == "PreferNoSchedule") count += !placement::tolerates(pod, view::Taint(taint));
  return count;
}

class TaintToleration : public Plugin {
 public:
  std::string_view name() const override { return "TaintToleration"; }
  uint32_t points() const override { return pre_filter_point | filter_point | pre_score_point | score_point; }

  struct State : CycleState::State {
    std::vector<int64_t> by_set;  // the pod's result for each set of taints
  };

  Answer pre_filter(CycleState& cycle, Reasons&) const override {
    if (cycle.cluster.taint_sets() == 1) return Answer::skip;  // no node has taints
    cycle.filter_state[index] =
        each_set(cycle, [&](const json::array& taints) { return untolerated(cycle.pod, taints) != nullptr; });
    return Answer::success;
  }
  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    if (!node.taints || !static_cast<const State&>(*cycle.filter_state[index]).by_set[node.taints]) return Answer::success;
    if (why) {
      view::Taint taint(*untolerated(cycle.pod, cycle.cluster.taints_of(node.taints)));
      std::string text = std::string(taint.key()) + ": " + std::string(taint.value());
      why->push_back({"node(s) had untolerated taint {" + text + "}",
                      "taint " + std::string(taint.key()) + ":" + std::string(taint.effect()),
                      "a toleration for taint " + std::string(taint.key()) + ", or a node without it"});
    }
    return Answer::unresolvable;
  }
  Answer pre_score(CycleState& cycle, const std::vector<const NodeInfo*>&) const override {
    auto state = each_set(cycle, [&](const json::array& taints) { return count_untolerated_preferences(cycle.pod, taints); });
    cycle.score_state[index] = std::move(state);
    return Answer::success;
  }
  void score(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    const auto& by_set = static_cast<const State&>(*cycle.score_state[index]).by_set;
    score_each(scores, [&](const NodeInfo& node) { return by_set[node.taints]; });
  }
  void normalize(const CycleState&, std::vector<NodeScore>& scores) const override { normalize_to_max(scores, true); }

  bool could_help(const ClusterEvent& event, const PodInfo& info, Cluster& cluster) const override {
    if (!event.is(ClusterEvent::node_added | ClusterEvent::node_taints)) return false;
    ObjectPtr pod = info.object->awake();
    return !untolerated(view::Pod(*pod), cluster.taints_of(event.node->taints));
  }

 private:
  template <typename Ask>
  static std::unique_ptr<State> each_set(CycleState& cycle, Ask ask) {
    auto state = std::make_unique<State>();
    for (uint32_t set = 0; set < cycle.cluster.taint_sets(); set++)
      state->by_set.push_back(int64_t(ask(cycle.cluster.taints_of(set))));
    return state;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_taint_toleration() { return std::make_unique<TaintToleration>(); }

}  // namespace coracle::scheduler
