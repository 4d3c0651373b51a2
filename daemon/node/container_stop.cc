// SPDX-License-Identifier: Apache-2.0
// Stops a container. See container_stop.h.
#include "daemon/node/container_stop.h"

#include "runtime/base/signal_name.h"

namespace coracle::node {

namespace {

// A container that has already ended needs no signal.
Result<void> unless_ended(Result<void> result) {
  if (!result && (result.error().code() == Code::not_found || result.error().code() == Code::conflict)) return {};
  return result;
}

}  // namespace

Result<void> ContainerStop::stop(const Step& step) {
  ContainerRecord* record = record_.find(step.container);
  const ContainerRef* ref = containers().find(step.container);
  if (!record) return {};
  if (!record->stopping) {
    record->stopping.emplace();
    event(false, "Killing", step.why.empty() ? "Stopping container " + step.container : step.why, ref);
    if (record->ailment == Ailment::post_start)
      event(true, "FailedPostStartHook", "PostStartHook failed: " + record->ailment_text, ref);
  }
  Stopping& stopping = *record->stopping;
  stopping.deadline = seams_.clock.steady() + bounded_seconds(step.grace_seconds);
  if (step.kind == StepKind::run_pre_stop && ref) {
    record->pre_stop = {HookState::running, ""};
    begin_hook(*ref, *record, "preStop", bounded_seconds(step.grace_seconds));
  } else if (step.kind == StepKind::terminate) {
    stopping.terminated = true;
    int signal = signal_number(record->mark.stop_signal).value_or(15);
    if (is_in_vain(*record, signal)) {
      stopping.killed = true;
      return unless_ended(seams_.runtime.kill_container(uid_, record->id())).wrap("kill container " + step.container);
    }
    TRY(unless_ended(seams_.runtime.signal_container(uid_, record->id(), signal)).wrap("stop container " + step.container));
  } else {
    stopping.terminated = stopping.killed = true;
    TRY(unless_ended(seams_.runtime.kill_container(uid_, record->id())).wrap("kill container " + step.container));
  }
  again_at(stopping.deadline);
  return {};
}

// In a node shutdown, a container that ignores its signal is not waited for: a shell without a trap, a server without a handler.
bool ContainerStop::is_in_vain(const ContainerRecord& record, int signal) const {
  if (!seams_.is_dropped || !seams_.node_ends_by(pod())) return false;
  auto sandbox = seams_.runtime.sandbox(uid_);
  if (!sandbox) return false;
  for (const auto& container : sandbox->containers)
    if (container.id == record.id() && container.running) return seams_.is_dropped(container.pid, signal);
  return false;
}

}  // namespace coracle::node
