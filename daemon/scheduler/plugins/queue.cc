// SPDX-License-Identifier: Apache-2.0
// Plugins before and after the node selection: SchedulingGates, PrioritySort, DefaultBinder. Source: Kubernetes "Pod Scheduling
// Readiness", "Pod Priority and Preemption".
#include "daemon/scheduler/plugins/plugins.h"

namespace coracle::scheduler {
namespace {

class SchedulingGates : public Plugin {
 public:
  std::string_view name() const override { return "SchedulingGates"; }
  uint32_t points() const override { return pre_enqueue_point; }

  Answer pre_enqueue(const PodInfo& info, Reasons& why) const override {
    ObjectPtr pod = info.object->awake();
    auto gates = view::Pod(*pod).spec().scheduling_gates();
    if (gates.empty()) return Answer::success;
    std::string names;
    for (view::PodSchedulingGate gate : gates) names.append(names.empty() ? "" : " ").append(gate.name());
    why.push_back({"waiting for scheduling gates: [" + names + "]", "", "removal of the scheduling gates " + names});
    return Answer::unresolvable;
  }
};

class PrioritySort : public Plugin {
 public:
  std::string_view name() const override { return "PrioritySort"; }
  uint32_t points() const override { return queue_sort_point; }
  bool sorts_before(const PodInfo& a, const PodInfo& b) const override {
    return a.priority != b.priority ? a.priority > b.priority : std::tie(a.created, a.key) < std::tie(b.created, b.key);
  }
};

class DefaultBinder : public Plugin {
 public:
  std::string_view name() const override { return "DefaultBinder"; }
  uint32_t points() const override { return bind_point; }
  json::value binding(const PodInfo& pod, const std::string& node) const override {
    return {{"apiVersion", "v1"},
            {"kind", "Binding"},
            {"metadata", {{"name", pod.key.name}, {"namespace", pod.key.ns}, {"uid", pod.uid}}},
            {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_scheduling_gates() { return std::make_unique<SchedulingGates>(); }
std::unique_ptr<Plugin> make_priority_sort() { return std::make_unique<PrioritySort>(); }
std::unique_ptr<Plugin> make_default_binder() { return std::make_unique<DefaultBinder>(); }

}  // namespace coracle::scheduler
