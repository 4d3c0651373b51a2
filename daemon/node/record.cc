// SPDX-License-Identifier: Apache-2.0
// See record.h. Pure.
#include "daemon/node/record.h"

#include <algorithm>
#include <utility>

#include "store/schema/priority.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

// The probe-level terminationGracePeriodSeconds of a failed probe, which replaces the pod's.
std::optional<int64_t> ailment_grace_seconds(Ailment ailment, const json::value& container) {
  if (ailment != Ailment::startup_probe && ailment != Ailment::liveness_probe) return std::nullopt;
  view::Container viewed(container);
  view::Probe probe = ailment == Ailment::startup_probe ? viewed.startup_probe() : viewed.liveness_probe();
  if (!probe.has_termination_grace_period_seconds()) return std::nullopt;
  return std::max<int64_t>(probe.termination_grace_period_seconds(), 0);
}

ObservedContainer observed_container(const ContainerRecord& record, const ContainerRef& container, const json::value& pod) {
  ObservedContainer observed;
  observed.name = record.name;
  observed.role = container.role;
  observed.policy = restart_policy(pod, container);
  observed.has_pre_stop = !view::Container(*container.spec).lifecycle().pre_stop().members().empty();
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
    view::ContainerStatus status(containers.status_of(container.name));
    if (status.container_id().empty()) continue;
    fresh.attempt = int(status.restart_count());
    fresh.started = status.started();
    fresh.ready = status.ready();
    fresh.mark.image_id = status.image_id();
    if (auto ended = status.state().terminated()) fresh.terminated = ended.members();
    if (auto last = status.last_state().terminated()) fresh.last = last.members();
    if (fresh.terminated) fresh.ended_at = clock.steady();
  }
}

}  // namespace

int ContainerRecord::exit_code() const { return terminated ? int(view::ContainerStateTerminated(*terminated).exit_code()) : 0; }

const ContainerRecord* PodRecord::find(std::string_view name) const {
  for (; indexed < containers.size(); ++indexed) by_name.emplace(containers[indexed].name, indexed);
  auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &containers[found->second];
}

ContainerRecord* PodRecord::find(std::string_view name) { return const_cast<ContainerRecord*>(std::as_const(*this).find(name)); }

void adopt_status(PodRecord& record, const json::value& pod, const Clock& clock) {
  if (record.containers.size() < count_containers(pod)) adopt_containers(record, pod, clock);
  view::PodStatus status = view::Pod(pod).status();
  if (!record.start_time) {
    auto time = parse_time(status.start_time());
    if (time) record.start_time = *time;
  }
  if (record.verdict == Verdict::none && ends_by_itself(pod)) {
    record.verdict = status.phase() == "Succeeded" ? Verdict::succeeded : Verdict::failed;
    record.verdict_reason = status.reason();
    record.verdict_message = status.message();
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

bool is_critical(const json::value& pod) { return view::Pod(pod).spec().priority() >= schema::kSystemClusterCritical; }

ObservedPod observed_pod(const PodRecord& record, const json::value& pod, bool gone, SteadyTime now,
                         std::optional<SteadyTime> node_ends_by) {
  ObservedPod observed;
  observed.sandbox = record.sandbox;
  observed.deleting = gone || !view::Pod(pod).metadata().deletion_timestamp().empty();
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

std::string definition_of(const json::value& container) { return std::string(view::Container(container).image()); }

}  // namespace coracle::node
