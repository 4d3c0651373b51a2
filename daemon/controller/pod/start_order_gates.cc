// SPDX-License-Identifier: Apache-2.0
// Start-up dependencies: removes the scheduling gate coracle.io/after from pods when all their dependencies are available. Until
// then the pod's condition PodScheduled shows what is missing. Dependencies that cannot be met (a cycle, a missing object) are
// also reported as a warning event.
//   gated pod, or a change in its namespace ──▶ key of the pod ──▶ missing() ──▶ remove the gate | report the reason
#include <algorithm>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "daemon/startup/startup_gate.h"

namespace coracle::controller {
namespace {

bool is_gated(const Object& pod) {
  view::Range<view::PodSchedulingGate> gates = view::Pod(pod).spec().scheduling_gates();
  return std::any_of(gates.begin(), gates.end(), [](view::PodSchedulingGate gate) { return gate.name() == startup::kAfter; });
}

class StartOrder : public Controller {
 public:
  explicit StartOrder(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        pods_(context.informers.of(kPod)),
        gate_(context.informers),
        recorder_(context.events, "start-order-controller") {}

  std::string_view name() const override { return "startorder"; }

  void subscribe(const Enqueue& enqueue) override {
    pods_.add_index("after", [](const Object& pod) {
      bool waits = !pod.deleting() && is_gated(pod);
      return waits ? std::vector<std::string>{pod.ns()} : std::vector<std::string>{};
    });
    gate_.on_change([=, this](const std::string& ns) {
      for (const ObjectPtr& pod : pods_.by_index("after", ns)) enqueue.now(pod->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr pod = pods_.get(key);
    if (!pod || pod->deleting() || !is_gated(*pod)) return Outcome{};
    std::string why = gate_.waits_for(*pod);
    if (why.empty()) {
      TRY(open(*pod));
    } else {
      TRY(tell(*pod, why));
    }
    return Outcome{};
  }

 private:
  Result<void> open(const Object& pod) {
    json::array gates = view::Pod(pod).spec().scheduling_gates().raw();
    auto ours = std::find_if(gates.begin(), gates.end(),
                             [](const json::value& gate) { return view::PodSchedulingGate(gate).name() == startup::kAfter; });
    gates.erase(ours);
    json::value left = gates.empty() ? json::value() : json::value(std::move(gates));
    json::value patch = {{"metadata", precondition_metadata(pod)}, {"spec", {{"schedulingGates", std::move(left)}}}};
    auto done = client_.patch(kPod, pod.key(), PatchType::merge, patch);
    if (!done && done.error().code() != Code::not_found) return done.take_error().wrap("let the pod go");
    return {};
  }

  // The message is recorded once as an event; the condition shows it as long as it applies.
  Result<void> tell(const Object& pod, const std::string& message) {
    auto present = pod_condition(view::Pod(pod), "PodScheduled");
    if (present && present->message() == message) return {};
    bool circular = !gate_.cycle(pod).empty(), unknown = message.find(": not found") != message.npos;
    if (circular || unknown) recorder_.warning(pod, circular ? "StartOrderCycle" : "WaitingForUnknown", message);
    else recorder_.normal(pod, "WaitingForOthers", message);
    json::array conditions = view::Pod(pod).status().conditions().raw();
    set_condition(conditions, {"PodScheduled", "False", "SchedulingGated", message}, clock_.now());
    json::value patch = {{"metadata", {{"uid", pod.uid()}}}, {"status", {{"conditions", std::move(conditions)}}}};
    auto done = client_.patch(kPod, pod.key(), PatchType::strategic, patch, {.subresource = "status"});
    if (!done && done.error().code() != Code::not_found) return done.take_error().wrap("say what the pod waits for");
    return {};
  }

  Client& client_;
  const Clock& clock_;
  Informer& pods_;
  startup::StartupGate gate_;
  EventRecorder recorder_;
};

}  // namespace

std::unique_ptr<Controller> make_start_order(const Context& context) { return std::make_unique<StartOrder>(context); }

}  // namespace coracle::controller
