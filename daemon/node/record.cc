// SPDX-License-Identifier: Apache-2.0
// See record.h. Pure.
#include "daemon/node/record.h"

#include <algorithm>
#include <utility>

#include "store/schema/priority.h"

namespace coracle::node {

namespace {

json::value parsed(std::string_view text) {
  auto value = parse_json(text);
  return value ? *std::move(value) : json::value(json::object());
}

// The probe-level terminationGracePeriodSeconds of a failed probe, which replaces the pod's.
std::optional<int64_t> ailment_grace_seconds(Ailment ailment, const json::value& container) {
  if (ailment != Ailment::startup_probe && ailment != Ailment::liveness_probe) return std::nullopt;
  bool startup = ailment == Ailment::startup_probe;
  const json::value* grace =
      find(container, startup ? "startupProbe.terminationGracePeriodSeconds" : "livenessProbe.terminationGracePeriodSeconds");
  if (!grace || !grace->is_int64()) return std::nullopt;
  return std::max<int64_t>(grace->get_int64(), 0);
}

ObservedContainer observed_container(const ContainerRecord& record, const ContainerRef& container, const json::value& pod) {
  ObservedContainer observed;
  observed.name = record.name;
  observed.role = container.role;
  observed.policy = restart_policy(pod, container);
  observed.has_pre_stop = !get_object(*container.spec, "lifecycle.preStop").empty();
  observed.in_sandbox = record.in_sandbox;
  observed.ever_ran = record.attempt >= 0;
  observed.running = record.running;
  if (record.terminated) {
    observed.exit_code = record.exit_code();
    observed.restart_by_rule = restarts_by_rule(*container.spec, record.exit_code());
    observed.back_off_until = record.back_off.until(record.ended_at);
  }
  observed.started = record.running && record.started;
  observed.ailment = record.ailment;
  observed.ailment_text = record.ailment_text;
  observed.ailment_grace_seconds = ailment_grace_seconds(record.ailment, *container.spec);
  if (record.running && record.ailment == Ailment::none && !record.mark.definition.empty() &&
      record.mark.definition != definition_of(*container.spec))
    observed.ailment = Ailment::definition_changed;
  observed.stopping = record.stopping;
  if (observed.stopping) observed.stopping->hook_running = record.pre_stop.state == HookState::running;
  return observed;
}

void adopt_containers(PodRecord& record, const json::value& pod, const Clock& clock) {
  const ContainerIndex containers(pod);
  for (const auto& container : containers.all()) {
    if (record.find(container.name)) continue;
    ContainerRecord& fresh = record.containers.emplace_back(std::string(container.name));
    const json::value* status = containers.status_of(container.name);
    if (!status || get_string(*status, "containerID").empty()) continue;
    fresh.attempt = int(get_int(*status, "restartCount"));
    fresh.started = get_bool(*status, "started");
    fresh.ready = get_bool(*status, "ready");
    fresh.mark.image_id = get_string(*status, "imageID");
    if (const auto* ended = coracle::find(*status, "state.terminated"); ended && ended->is_object())
      fresh.terminated = ended->get_object();
    if (const auto* last = coracle::find(*status, "lastState.terminated"); last && last->is_object())
      fresh.last = last->get_object();
    if (fresh.terminated) fresh.ended_at = clock.steady();
  }
}

}  // namespace

ContainerMark ContainerMark::from_text(std::string_view text) {
  json::value value = parsed(text);
  auto string = [&](const char* name) { return std::string(get_string(value, name)); };
  return {string("name"),
          string("image"),
          string("imageID"),
          string("stopSignal"),
          string("definition"),
          string("terminationPolicy"),
          int(get_int(value, "attempt"))};
}

std::string ContainerMark::to_text() const {
  return coracle::to_text(json::object{{"name", name},
                                       {"attempt", attempt},
                                       {"image", image},
                                       {"imageID", image_id},
                                       {"stopSignal", stop_signal},
                                       {"definition", definition},
                                       {"terminationPolicy", termination_policy}});
}

SandboxMark SandboxMark::from_text(std::string_view text) {
  json::value value = parsed(text);
  return {Key{std::string(get_string(value, "namespace")), std::string(get_string(value, "name"))},
          std::string(get_string(value, "uid")),
          std::string(get_string(value, "created")),
          get_int(value, "graceSeconds", 30),
          get_bool(value, "hostNetwork"),
          get_bool(value, "static"),
          uint32_t(std::clamp<int64_t>(get_int(value, "firstID"), 0, UINT32_MAX))};
}

std::string SandboxMark::to_text() const {
  return coracle::to_text(json::object{{"namespace", pod.ns},
                                       {"name", pod.name},
                                       {"uid", uid},
                                       {"created", created},
                                       {"graceSeconds", grace_seconds},
                                       {"hostNetwork", host_network},
                                       {"static", is_static},
                                       {"firstID", first_id}});
}

int ContainerRecord::exit_code() const {
  if (!terminated) return 0;
  const auto* code = terminated->if_contains("exitCode");
  return code && code->is_int64() ? int(code->get_int64()) : 0;
}

const ContainerRecord* PodRecord::find(std::string_view name) const {
  for (; indexed < containers.size(); ++indexed) by_name.emplace(containers[indexed].name, indexed);
  auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &containers[found->second];
}

ContainerRecord* PodRecord::find(std::string_view name) { return const_cast<ContainerRecord*>(std::as_const(*this).find(name)); }

void adopt_status(PodRecord& record, const json::value& pod, const Clock& clock) {
  if (record.containers.size() < count_containers(pod)) adopt_containers(record, pod, clock);
  if (!record.start_time) {
    auto time = parse_time(get_string(pod, "status.startTime"));
    if (time) record.start_time = *time;
  }
  if (record.verdict == Verdict::none && ends_by_itself(pod)) {
    record.verdict = get_string(pod, "status.phase") == "Succeeded" ? Verdict::succeeded : Verdict::failed;
    record.verdict_reason = get_string(pod, "status.reason");
    record.verdict_message = get_string(pod, "status.message");
  }
}

namespace {

void bound(std::optional<SteadyTime>& moment, SteadyTime latest) {
  if (moment) moment = std::min(*moment, latest);
}

void end_by(ObservedPod& observed, SteadyTime latest) {
  observed.node_ends_by = latest;
  auto left = std::chrono::ceil<std::chrono::seconds>(latest - observed.now).count();
  observed.grace_seconds = std::min(observed.grace_seconds, std::max<int64_t>(left, 1));
  bound(observed.end_deadline, latest);
  bound(observed.drain_until, latest);
  for (auto* all : {&observed.init, &observed.main, &observed.ephemeral})
    for (ObservedContainer& container : *all)
      if (container.stopping) container.stopping->deadline = std::min(container.stopping->deadline, latest);
}

}  // namespace

bool is_critical(const json::value& pod) { return get_int(pod, "spec.priority") >= schema::kSystemClusterCritical; }

ObservedPod observed_pod(const PodRecord& record, const json::value& pod, bool gone, SteadyTime now,
                         std::optional<SteadyTime> node_ends_by) {
  ObservedPod observed;
  observed.sandbox = record.sandbox;
  observed.deleting = gone || !get_string(pod, "metadata.deletionTimestamp").empty();
  observed.verdict = record.verdict;
  // Even with a grace period of 0, a container gets its signal.
  observed.grace_seconds = std::max<int64_t>(grace_seconds(pod), observed.deleting ? 1 : 0);
  if (record.end_grace_seconds) observed.grace_seconds = std::min(observed.grace_seconds, *record.end_grace_seconds);
  observed.end_deadline = record.end_deadline;
  observed.active_deadline = record.active_deadline;
  observed.held_back = record.held_back;
  observed.drain_until = record.drain_until;
  observed.now = now;
  for (const auto& container : containers_of(pod)) {
    const ContainerRecord* found = record.find(container.name);
    if (!found) continue;
    (container.role == Role::main ? observed.main : observed.init).push_back(observed_container(*found, container, pod));
  }
  for (const auto& container : ephemeral_of(pod))
    if (const ContainerRecord* found = record.find(container.name))
      observed.ephemeral.push_back(observed_container(*found, container, pod));
  observed.initialized_before =
      std::any_of(observed.main.begin(), observed.main.end(), [](const auto& c) { return c.in_sandbox; });
  if (node_ends_by) end_by(observed, *node_ends_by);
  return observed;
}

std::string definition_of(const json::value& container) { return std::string(get_string(container, "image")); }

}  // namespace coracle::node
