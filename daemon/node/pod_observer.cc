// SPDX-License-Identifier: Apache-2.0
// Brings the record of one pod up to date. See pod_observer.h.
#include "daemon/node/pod_observer.h"

#include <algorithm>

#include "daemon/node/container_text.h"
#include "daemon/node/resources.h"
#include "daemon/node/status.h"
#include "daemon/node/stream/log_reader.h"
#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr size_t kTerminationMessageMax = 4096, kTerminationLogMax = 2048;
constexpr int64_t kTerminationLogLines = 80;
constexpr const char* kEvicted = "Evicted";
constexpr int64_t kEvictionGraceSeconds = 1;  // kubelet's, for a pod over its limit

// The pod was started by an earlier daemon version without user namespaces: it keeps the host's users until its next sandbox.
Result<ObjectPtr> with_host_users(const Object& pod) {
  json::value left = pod.json();
  make(left, "spec.hostUsers") = true;
  return Object::make(kPod, std::move(left));
}

}  // namespace

Result<void> PodObserver::look() {
  auto found = seams_.runtime.sandbox(uid_);
  if (!found && found.error().code() != Code::not_found) return found.take_error().wrap("look at the sandbox");
  runtime::SandboxState sandbox;
  if (found) sandbox = *std::move(found);
  record_.sandbox = !found ? SandboxFact::absent : sandbox.alive ? SandboxFact::alive : SandboxFact::dead;
  const bool has_host_users = SandboxMark::from_text(sandbox.metadata).first_id == 0;
  if (record_.sandbox == SandboxFact::alive && has_own_users(pod()) && has_host_users)
    desired_.object = TRY(with_host_users(*desired_.object));
  const auto attempts = attempts_in(sandbox);
  const Attempts none;
  for (auto& container : record_.containers) {
    auto there = attempts.find(container.name);
    look_at(container, there == attempts.end() ? none : there->second);
  }
  if (desired_.lost_network) {
    seams_.table.change_existing(uid_, [](RestingPod& pod) { pod.lost_network = false; });
    record_.network_known = false;
  }
  if (record_.sandbox == SandboxFact::alive && !record_.network_known) TRY(sandbox_.attach_network());
  return {};
}

std::map<std::string, PodObserver::Attempts, std::less<>> PodObserver::attempts_in(const runtime::SandboxState& sandbox) {
  std::map<std::string, Attempts, std::less<>> found;
  for (const auto& state : sandbox.containers) {
    ContainerMark mark = ContainerMark::from_text(state.metadata);
    Attempts& its = found[mark.name];
    if (its.newest && mark.attempt < its.newest_mark.attempt) {
      its.before = &state;
      continue;
    }
    its.before = its.newest;
    its.newest = &state;
    its.newest_mark = std::move(mark);
  }
  return found;
}

void PodObserver::look_at(ContainerRecord& container, const Attempts& found) {
  const auto& [newest, before, newest_mark] = found;
  bool alive = record_.sandbox == SandboxFact::alive;
  auto failed = entry_.start_failed.find(container.name);
  if (failed != entry_.start_failed.end() && failed->second == container.attempt) {
    container.running = false;  // this attempt did not start; the runtime's state is of an earlier one
    container.in_sandbox = alive;
    return;
  }
  container.in_sandbox = alive && newest;
  container.running = alive && newest && newest->running;
  if (!newest) {
    if (container.attempt >= 0 && !container.terminated)
      note_lost(container, 137, "ContainerStatusUnknown", "The container could not be located when the pod was looked at");
    return;
  }
  if (newest_mark.attempt > container.attempt) container.terminated.reset();
  container.attempt = newest_mark.attempt;
  container.mark = newest_mark;
  container.started_at = newest->started;
  if (container.running) {
    container.terminated.reset();
  } else if (!container.terminated) {
    if (newest->exit) note_end(container, *newest);
    else note_lost(container, 255, "Unknown", "");
  }
  if (!container.last && before && before->exit) {
    ContainerRecord earlier(container.name);
    earlier.mark = ContainerMark::from_text(before->metadata);
    earlier.attempt = earlier.mark.attempt;
    note_end(earlier, *before);
    container.last = std::move(earlier.terminated);
  }
}

void PodObserver::note_end(ContainerRecord& container, const runtime::ContainerState& state) {
  const runtime::ExitStatus& exit = *state.exit;
  json::object ended{{"exitCode", exit.exit_code}};
  ended["reason"] = exit.oom_killed ? "OOMKilled" : exit.exit_code == 0 ? "Completed" : "Error";
  if (std::string message = termination_message(container, exit.exit_code); !message.empty()) ended["message"] = message;
  ended["startedAt"] = format_time(exit.started);
  ended["finishedAt"] = format_time(exit.finished);
  ended["containerID"] = container_id(record_, container);
  container.terminated = std::move(ended);
  // On the steady clock, so that a change of the wall clock does not prolong a back-off.
  auto ago = std::clamp<WallTime::duration>(seams_.clock.now() - exit.finished, WallTime::duration(0), BackOff::kForgottenAfter);
  container.ended_at = seams_.clock.steady() - ago;
  container.stopping.reset();
  container.ailment = Ailment::none;
  seams_.probes.forget(uid_, container.id());
}

void PodObserver::note_lost(ContainerRecord& container, int exit_code, std::string reason, std::string message) {
  json::object ended{{"exitCode", exit_code}, {"reason", std::move(reason)}};
  if (!message.empty()) ended["message"] = std::move(message);
  if (container.started_at != WallTime()) ended["startedAt"] = format_time(container.started_at);
  ended["finishedAt"] = format_time(seams_.clock.now());
  ended["containerID"] = container_id(record_, container);
  container.terminated = std::move(ended);
  container.ended_at = seams_.clock.steady();
  container.stopping.reset();
  container.ailment = Ailment::none;
  // It did not fail itself, the machine or its pause process did: it restarts at once.
  container.back_off.reset();
}

// The content of a container's termination log or, if its terminationMessagePolicy requests that, the end of its log.
std::string PodObserver::termination_message(const ContainerRecord& container, int exit_code) const {
  std::string file = paths_.container(container.name) + "/" + std::to_string(container.attempt) + "-message";
  if (std::string text = end_of_file(file, kTerminationMessageMax); !text.empty()) return as_utf8(text);
  if (container.mark.termination_policy != "FallbackToLogsOnError" || exit_code == 0) return "";
  return as_utf8(last_lines(paths_.log(container.name, container.attempt), kTerminationLogLines, kTerminationLogMax));
}

void PodObserver::take_reports() {
  Reports reports = take_all_reports();
  for (auto& container : record_.containers) {
    if (auto hook = reports.hooks.find(hook_name(container, "postStart")); hook != reports.hooks.end()) {
      container.post_start = hook->second;
      if (hook->second.state == HookState::failed) {
        container.ailment = Ailment::post_start;
        container.ailment_text = hook->second.text;
      }
    }
    if (auto hook = reports.hooks.find(hook_name(container, "preStop")); hook != reports.hooks.end()) {
      container.pre_stop = hook->second;
      if (hook->second.state == HookState::failed)
        event(true, "FailedPreStopHook", "PreStopHook failed: " + hook->second.text, containers().find(container.name));
    }
  }
  for (const auto& [name, pull] : reports.pulls) images_.take_pull(name, pull);
  if (!reports.evicted.empty() && record_.verdict == Verdict::none && !deleting()) end_as_evicted(std::move(reports.evicted));
}

void PodObserver::end_as_evicted(std::string why) {
  event(true, kEvicted, why);
  record_.verdict = Verdict::failed;
  record_.verdict_reason = kEvicted;
  record_.verdict_message = std::move(why);
  record_.end_grace_seconds = kEvictionGraceSeconds;
}

// Copies the probe results of running containers to the record.
void PodObserver::apply_probe_results() {
  for (const auto& ref : containers().all()) {
    ContainerRecord* container = record_.find(ref.name);
    if (!container || !container->running) continue;
    bool hook_done = container->post_start.state == HookState::none || container->post_start.state == HookState::done;
    if (!hook_done) {
      container->started = container->ready = false;
      continue;
    }
    view::Container spec(*ref.spec);
    bool probed = spec.has_startup_probe() || spec.has_liveness_probe() || spec.has_readiness_probe();
    if (!probed) {
      container->started = container->ready = true;
      continue;
    }
    std::string address = record_.ips.empty() ? std::string() : record_.ips.front();
    if (!seams_.probes.watches(uid_, container->id()))
      seams_.probes.watch({uid_, container->name, container->id(), *ref.spec, address,
                           steady_of(container->started_at, seams_.clock), container->started, container->ready});
    ProbeVerdict verdict = seams_.probes.verdict(uid_, container->id());
    container->started = verdict.startup_passed;
    container->ready = verdict.startup_passed && verdict.ready;
    // Of a refused pod, what is ended would not be started again: a container that is not well is better than none.
    if (verdict.failed && container->ailment == Ailment::none && !desired_.refused) {
      container->ailment = *verdict.failed == ProbeKind::startup ? Ailment::startup_probe : Ailment::liveness_probe;
      container->ailment_text = verdict.text;
    }
  }
}

}  // namespace coracle::node
