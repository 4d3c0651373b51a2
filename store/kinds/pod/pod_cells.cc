// SPDX-License-Identifier: Apache-2.0
// Cells of pods. The status column is one word: Terminating before everything else; the first unfinished init container; the
// reason of a waiting or terminated container; or the phase. Source: Kubernetes "Pod Lifecycle"; kubectl's observable output.
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/pod/pod_kinds.h"
#include "store/kinds/pod/pod_state.h"
#include "store/schema/table.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

bool has_condition(view::Pod pod, std::string_view type, std::string_view status) {
  for (view::PodCondition condition : pod.status().conditions()) {
    if (condition.type() == type && condition.status() == status) return true;
  }
  return false;
}

// Names of the init containers that keep running (sidecars).
using Sidecars = std::set<std::string_view>;
Sidecars sidecars_of(view::Pod pod) {
  Sidecars names;
  for (view::Container container : pod.spec().init_containers()) {
    if (container.restart_policy() == "Always") names.insert(container.name());
  }
  return names;
}

std::string ended_as(view::ContainerStateTerminated ended, std::string_view prefix) {
  std::string text(prefix);
  if (!ended.reason().empty()) return text + std::string(ended.reason());
  if (ended.signal()) return text + "Signal:" + std::to_string(ended.signal());
  return text + "ExitCode:" + std::to_string(ended.exit_code());
}

// What initialization waits for; "" if it is complete.
std::string init_status(view::Pod pod, const Sidecars& sidecars) {
  size_t at = 0;
  for (view::ContainerStatus status : pod.status().init_container_statuses()) {
    size_t index = at++;
    view::ContainerStateTerminated ended = status.state().terminated();
    if (ended && ended.exit_code() == 0) continue;
    if (sidecars.contains(status.name()) && status.started()) continue;
    if (ended) return ended_as(ended, "Init:");
    std::string_view reason = status.state().waiting().reason();
    if (!reason.empty() && reason != "PodInitializing") return "Init:" + std::string(reason);
    return "Init:" + std::to_string(index) + "/" + std::to_string(pod.spec().init_containers().size());
  }
  return "";
}

std::string container_status(view::Pod pod, std::string reason) {
  bool running = false;
  auto statuses = pod.status().container_statuses();
  for (size_t i = statuses.size(); i-- > 0;) {
    view::ContainerStatus status = statuses[i];
    view::ContainerStateTerminated ended = status.state().terminated();
    std::string_view waits = status.state().waiting().reason();
    if (!waits.empty()) reason = waits;
    else if (ended) reason = ended_as(ended, "");
    else if (status.ready() && status.state().running()) running = true;
  }
  if (reason == "Completed" && running) return has_condition(pod, "Ready", "True") ? "Running" : "NotReady";
  return reason;
}

json::value pod_status(const CellInput& in) {
  view::Pod pod(in.object);
  std::string reason(pod.status().reason().empty() ? pod.status().phase() : pod.status().reason());
  for (view::PodCondition condition : pod.status().conditions()) {
    if (condition.type() == "PodScheduled" && condition.reason() == "SchedulingGated") reason = "SchedulingGated";
  }
  std::string initializing = init_status(pod, sidecars_of(pod));
  if (!initializing.empty()) reason = initializing;
  if (initializing.empty() || has_condition(pod, "Initialized", "True")) reason = container_status(pod, reason);
  if (!pod.metadata().deletion_timestamp().empty()) {
    if (pod.status().reason() == "NodeLost") return json::value("Unknown");
    if (!is_terminal_phase(pod.status().phase())) return json::value("Terminating");
  }
  return json::value(reason);
}

json::value pod_ready(const CellInput& in) {
  view::Pod pod(in.object);
  Sidecars sidecars = sidecars_of(pod);
  size_t total = pod.spec().containers().size() + sidecars.size(), ready = 0;
  for (view::ContainerStatus status : pod.status().init_container_statuses()) {
    ready += sidecars.contains(status.name()) && status.started() && status.ready();
  }
  for (view::ContainerStatus status : pod.status().container_statuses()) ready += status.ready() && status.state().running();
  return json::value(std::to_string(ready) + "/" + std::to_string(total));
}

struct Restarts {
  int64_t count = 0;
  std::string_view last;
  void add(view::ContainerStatus status) {
    count += status.restart_count();
    std::string_view ended = status.last_state().terminated().finished_at();
    if (ended > last) last = ended;
  }
};

json::value pod_restarts(const CellInput& in) {
  view::Pod pod(in.object);
  Sidecars sidecars = sidecars_of(pod);
  Restarts of_sidecars, init;
  for (view::ContainerStatus status : pod.status().init_container_statuses()) {
    init.add(status);
    if (sidecars.contains(status.name())) of_sidecars.add(status);
  }
  bool initializing = !init_status(pod, sidecars).empty() && !has_condition(pod, "Initialized", "True");
  Restarts& shown = initializing ? init : of_sidecars;
  if (!initializing) {
    for (view::ContainerStatus status : pod.status().container_statuses()) shown.add(status);
  }
  std::string text = std::to_string(shown.count);
  if (shown.count && !shown.last.empty()) text += " (" + human_age(shown.last, in.now) + " ago)";
  return json::value(text);
}

json::value pod_ip(const CellInput& in) {
  view::PodStatus status = view::Pod(in.object).status();
  if (!status.pod_ips().empty()) return or_none(status.pod_ips()[0].ip());
  return or_none(status.pod_ip());
}

json::value pod_gates(const CellInput& in) {
  view::Pod pod(in.object);
  std::set<std::string_view> true_ones;
  for (view::PodCondition condition : pod.status().conditions()) {
    if (condition.status() == "True") true_ones.insert(condition.type());
  }
  size_t total = pod.spec().readiness_gates().size(), passed = 0;
  for (view::PodReadinessGate gate : pod.spec().readiness_gates()) passed += true_ones.contains(gate.condition_type());
  if (total == 0) return or_none("");
  return json::value(std::to_string(passed) + "/" + std::to_string(total));
}

constexpr NamedCellRule kPodCells[] = {{"pod.status", pod_status},
                                       {"pod.ready", pod_ready},
                                       {"pod.restarts", pod_restarts},
                                       {"pod.ip", pod_ip},
                                       {"pod.gates", pod_gates}};

}  // namespace

std::span<const NamedCellRule> pod_cells() { return kPodCells; }

json::array pod_row_conditions(const json::value& object) {
  view::Pod pod(object);
  if (!is_terminal_phase(pod.status().phase())) return {};
  bool succeeded = pod.status().phase() == "Succeeded";
  json::object condition;
  condition["type"] = "Completed";
  condition["status"] = "True";
  condition["reason"] = pod.status().phase();
  condition["message"] = succeeded ? "The pod has completed successfully." : "The pod failed.";
  return {std::move(condition)};
}

}  // namespace coracle::schema
