// SPDX-License-Identifier: Apache-2.0
// See plan.h. `run` starts a pod and keeps it running, `wind_down` terminates it, and `end_with_node` terminates it for a node
// shutdown.
#include "daemon/node/plan.h"

#include <algorithm>

namespace coracle::node {

namespace {

// Minimum after a preStop hook, or after the containers that a sidecar serves, have used up the grace period.
constexpr int64_t kLeastGraceSeconds = 2;

class Planner {
 public:
  explicit Planner(const ObservedPod& observed) : observed_(observed) {}

  Plan run() {
    if (observed_.verdict == Verdict::none && !observed_.deleting && past_deadline()) {
      plan_.verdict = Verdict::failed;
      plan_.past_deadline = true;
    } else {
      plan_.verdict = observed_.verdict;
    }
    if (plan_.verdict == Verdict::none && !observed_.deleting && observed_.node_ends_by) {
      end_with_node();
      return std::move(plan_);
    }
    if (plan_.verdict == Verdict::none && !observed_.deleting) bring_up();
    if (plan_.verdict != Verdict::none || observed_.deleting) wind_down();
    return std::move(plan_);
  }

 private:
  bool past_deadline() {
    if (!observed_.active_deadline) return false;
    if (observed_.now >= *observed_.active_deadline) return true;
    wake_at(*observed_.active_deadline);
    return false;
  }

  void wake_at(SteadyTime when) { plan_.again = plan_.again ? std::min(*plan_.again, when) : when; }
  void step(StepKind kind, const std::string& container = {}, std::string why = {}, int64_t grace_seconds = 0) {
    plan_.steps.push_back({kind, container, std::move(why), grace_seconds});
  }

  // ---- start ----

  void bring_up() {
    if (observed_.sandbox != SandboxFact::alive) {
      if (Verdict ended = end_of_what_ran(); ended != Verdict::none) {
        plan_.verdict = ended;
        return;
      }
      if (observed_.held_back) return;
      if (observed_.sandbox == SandboxFact::dead) step(StepKind::discard_sandbox);
      step(StepKind::create_sandbox);
    }
    if (observed_.sandbox == SandboxFact::alive)
      for (const auto& container : observed_.ephemeral)
        if (!container.ever_ran) start(container);
    plan_.initialized = run_init_containers();
    if (plan_.initialized && plan_.verdict == Verdict::none) run_main_containers();
  }

  // A pod without a live sandbox has ended if none of its containers may run again.
  Verdict end_of_what_ran() const {
    bool any_main_ran = false, failed = false;
    for (const auto& container : observed_.main) {
      if (!container.ever_ran) continue;
      any_main_ran = true;
      if (should_restart(container)) return Verdict::none;
      failed = failed || container.exit_code.value_or(0) != 0;
    }
    for (const auto& container : observed_.init) {
      if (container.role == Role::init && container.ever_ran && !any_main_ran && container.policy == RestartPolicy::never)
        return Verdict::failed;  // its result was lost with the sandbox, and it must not run twice
    }
    bool all_ran = std::all_of(observed_.main.begin(), observed_.main.end(), [](const auto& c) { return c.ever_ran; });
    if (!any_main_ran || !all_ran) return Verdict::none;
    return failed ? Verdict::failed : Verdict::succeeded;
  }

  bool in_sandbox(const ObservedContainer& container) const {
    return observed_.sandbox == SandboxFact::alive && container.in_sandbox;
  }

  // Starts the init containers in order, each after the previous one is done. Returns whether the main containers may start.
  bool run_init_containers() {
    bool main_began = observed_.sandbox == SandboxFact::alive && observed_.initialized_before;
    bool gate_open = true;
    for (const auto& container : observed_.init) {
      if (!gate_open) break;
      if (container.role == Role::sidecar) {
        keep_running(container);
        if (!main_began && !(in_sandbox(container) && container.running && container.started)) gate_open = false;
        continue;
      }
      if (main_began) continue;  // they run once per sandbox
      gate_open = run_to_end(container);
    }
    return main_began || (gate_open && plan_.verdict == Verdict::none);
  }

  // A regular init container. Returns whether it has succeeded.
  bool run_to_end(const ObservedContainer& container) {
    if (!in_sandbox(container)) {
      start(container);
      return false;
    }
    if (container.running) {
      check_running(container);
      return false;
    }
    if (container.exit_code == 0) return true;
    if (should_restart(container)) {
      start(container);
    } else {
      plan_.verdict = Verdict::failed;
    }
    return false;
  }

  void run_main_containers() {
    bool all_ended = true, failed = false;
    for (const auto& container : observed_.main) {
      keep_running(container);
      bool ended = container.ever_ran && !container.running && container.exit_code && !should_restart(container);
      all_ended = all_ended && ended;
      failed = failed || container.exit_code.value_or(0) != 0;
    }
    if (all_ended) plan_.verdict = failed ? Verdict::failed : Verdict::succeeded;
  }

  void keep_running(const ObservedContainer& container) {
    if (in_sandbox(container) && container.running) {
      check_running(container);
    } else if (!container.ever_ran || should_restart(container)) {
      start(container);
    }
  }

  void start(const ObservedContainer& container) {
    if (container.back_off_until && observed_.now < *container.back_off_until) {
      plan_.backed_off.push_back(container.name);
      wake_at(*container.back_off_until);
      return;
    }
    step(StepKind::start, container.name);
  }

  // A running container: terminates it if it is unhealthy, and continues a termination.
  void check_running(const ObservedContainer& container) {
    if (container.stopping) return go_on_stopping(container);
    const std::string name = "Container " + container.name;
    switch (container.ailment) {
      case Ailment::none: return;
      case Ailment::startup_probe: return stop_ill(container, name + " failed startup probe, will be restarted");
      case Ailment::liveness_probe: return stop_ill(container, name + " failed liveness probe, will be restarted");
      case Ailment::definition_changed: return stop_ill(container, name + " definition changed, will be restarted");
      case Ailment::post_start: return stop_ill(container, "FailedPostStartHook");
    }
  }

  // ---- termination ----

  void stop_ill(const ObservedContainer& container, std::string why) {
    stop(container, std::move(why), container.ailment_grace_seconds.value_or(observed_.grace_seconds));
  }

  void stop(const ObservedContainer& container, std::string why, int64_t grace_seconds) {
    if (grace_seconds == 0) return step(StepKind::kill, container.name, std::move(why));
    step(has_hook(container) ? StepKind::run_pre_stop : StepKind::terminate, container.name, std::move(why), grace_seconds);
  }

  // `turn`: its termination may begin.
  void go_on_stopping(const ObservedContainer& container, bool may_end = true) {
    const Stopping& stopping = *container.stopping;
    if (stopping.killed) return;  // now it only has to exit
    bool over = observed_.now >= stopping.deadline;
    if (!stopping.terminated) {
      if (stopping.hook_running && !over) return wake_at(stopping.deadline);
      if (!may_end) return wake_at(*plan_.end_deadline);
      return step(StepKind::terminate, container.name, {}, left_until(stopping.deadline));
    }
    if (over) return step(StepKind::kill, container.name);
    wake_at(stopping.deadline);
  }

  void wind_down() {
    plan_.steps.clear();
    plan_.backed_off.clear();
    if (end_all()) return;
    step(StepKind::release);
    if (observed_.deleting) step(StepKind::forget);
  }

  void end_with_node() {
    plan_.initialized = observed_.initialized_before;
    if (observed_.sandbox != SandboxFact::alive || end_all()) return;
    plan_.verdict = end_of_what_ran();
    plan_.ended_with_node = plan_.verdict != Verdict::none;
    step(plan_.ended_with_node ? StepKind::release : StepKind::stop_sandbox);
  }

  // Terminates the running containers. Returns whether any still runs.
  bool end_all() {
    plan_.end_deadline = observed_.end_deadline;
    bool any_runs = false;
    if (observed_.sandbox == SandboxFact::alive) {
      for (const auto* all : {&observed_.main, &observed_.ephemeral})
        for (const auto& container : *all) any_runs |= end(container, true);
      for (const auto& container : observed_.init)
        if (container.role == Role::init) any_runs |= end(container, true);
      // Sidecars are terminated after the other containers, in reverse order.
      for (auto container = observed_.init.rbegin(); container != observed_.init.rend(); ++container)
        if (container->role == Role::sidecar) any_runs |= end(*container, !any_runs);
    }
    if (!any_runs) plan_.again.reset();
    return any_runs;
  }

  // Returns whether it still runs. `turn`: the containers that it serves have ended.
  bool end(const ObservedContainer& container, bool may_end) {
    if (!container.running) return false;
    if (!container.stopping && observed_.drain_until && observed_.now < *observed_.drain_until) {
      wake_at(*observed_.drain_until);
      return true;
    }
    if (!plan_.end_deadline) plan_.end_deadline = observed_.now + bounded_seconds(observed_.grace_seconds);
    const bool whole = !observed_.end_deadline || observed_.grace_seconds == 0;
    may_end = may_end || observed_.grace_seconds == 0 || observed_.now >= *plan_.end_deadline;
    if (container.stopping) {
      go_on_stopping(container, may_end);
    } else if (may_end || has_hook(container)) {
      stop(container, "Stopping container " + container.name, whole ? observed_.grace_seconds : left_until(*plan_.end_deadline));
    } else {
      wake_at(*plan_.end_deadline);
    }
    return true;
  }

  static bool has_hook(const ObservedContainer& container) {
    return container.has_pre_stop && container.ailment != Ailment::post_start;
  }

  int64_t left_until(SteadyTime when) const {
    return std::max<int64_t>(std::chrono::ceil<std::chrono::seconds>(when - observed_.now).count(), kLeastGraceSeconds);
  }

  const ObservedPod& observed_;
  Plan plan_;
};

}  // namespace

bool should_restart(const ObservedContainer& container) {
  if (!container.exit_code) return true;
  if (container.restart_by_rule) return true;
  switch (container.policy) {
    case RestartPolicy::always: return true;
    case RestartPolicy::on_failure: return *container.exit_code != 0;
    case RestartPolicy::never: return false;
  }
  return false;
}

Plan make_plan(const ObservedPod& observed) { return Planner(observed).run(); }

}  // namespace coracle::node
