// SPDX-License-Identifier: Apache-2.0
// The pod lifecycle as a table: observed state in, steps out.
#include "daemon/node/plan.h"

#include <gtest/gtest.h>

namespace coracle::node {
namespace {

using std::chrono::seconds;

const SteadyTime kNow{seconds(1000)};

ObservedContainer fresh(std::string name, Role role = Role::main, RestartPolicy policy = RestartPolicy::always) {
  ObservedContainer observed;
  observed.name = std::move(name);
  observed.role = role;
  observed.policy = role == Role::sidecar ? RestartPolicy::always : policy;
  return observed;
}
ObservedContainer running(std::string name, Role role = Role::main, RestartPolicy policy = RestartPolicy::always) {
  ObservedContainer observed = fresh(std::move(name), role, policy);
  observed.in_sandbox = observed.ever_ran = observed.running = observed.started = true;
  return observed;
}
ObservedContainer ended(std::string name, int code, Role role = Role::main, RestartPolicy policy = RestartPolicy::always) {
  ObservedContainer observed = fresh(std::move(name), role, policy);
  observed.in_sandbox = observed.ever_ran = true;
  observed.exit_code = code;
  return observed;
}
template <typename F>
ObservedContainer with(ObservedContainer observed, F&& change) {
  change(observed);
  return observed;
}
ObservedContainer lost(ObservedContainer observed) {  // together with its sandbox
  observed.in_sandbox = observed.running = observed.started = false;
  if (!observed.exit_code) observed.exit_code = 255;
  return observed;
}

ObservedPod pod(SandboxFact sandbox, std::vector<ObservedContainer> main, std::vector<ObservedContainer> init = {}) {
  ObservedPod observed;
  observed.sandbox = sandbox;
  observed.main = std::move(main);
  observed.init = std::move(init);
  observed.now = kNow;
  for (const auto& container : observed.main) observed.initialized_before |= container.in_sandbox;
  return observed;
}
template <typename F>
ObservedPod with(ObservedPod observed, F&& change) {
  change(observed);
  return observed;
}

std::string text(const Plan& plan) {  // "create_sandbox start:a … -> failed"
  static const char* const kNames[] = {"create_sandbox",  "start",        "run_pre_stop", "terminate", "kill",
                                       "discard_sandbox", "stop_sandbox", "release",      "forget"};
  std::string out;
  for (const auto& step : plan.steps) {
    if (!out.empty()) out += ' ';
    out += kNames[int(step.kind)];
    if (!step.container.empty()) out += ":" + step.container;
    if (step.grace_seconds) out += "/" + std::to_string(step.grace_seconds);
  }
  for (const auto& name : plan.backed_off) out += " wait:" + name;
  if (plan.verdict == Verdict::succeeded) out += " -> succeeded";
  if (plan.verdict == Verdict::failed) out += " -> failed";
  return out;
}

constexpr auto kAlive = SandboxFact::alive;
constexpr auto kDead = SandboxFact::dead;
constexpr auto kAbsent = SandboxFact::absent;
constexpr auto kNever = RestartPolicy::never;
constexpr auto kOnFailure = RestartPolicy::on_failure;
constexpr auto kInit = Role::init;
constexpr auto kSidecar = Role::sidecar;
constexpr auto kMain = Role::main;

void deleted(ObservedPod& observed) { observed.deleting = true; }
void node_ends(ObservedPod& observed) { observed.node_ends_by = kNow + seconds(60); }

TEST(Plan, does_what_the_lifecycle_asks) {
  struct Row {
    const char* name;
    ObservedPod observed;
    const char* want;
  };
  auto initial = [](const char* name) { return fresh(name, kInit, kOnFailure); };
  const std::vector<Row> rows = {
      {"a new pod", pod(kAbsent, {fresh("a"), fresh("b")}), "create_sandbox start:a start:b"},
      {"a pod that waits for others", with(pod(kAbsent, {fresh("a")}), [](auto& f) { f.held_back = true; }), ""},
      {"the same after a power cut", with(pod(SandboxFact::dead, {lost(running("a"))}), [](auto& f) { f.held_back = true; }), ""},
      {"what runs goes on", with(pod(kAlive, {ended("a", 1)}), [](auto& f) { f.held_back = true; }), "start:a"},
      {"who waits can be ended", with(pod(kAbsent, {fresh("a")}), [](auto& f) { f.held_back = f.deleting = true; }),
       "release forget"},
      {"who still gets connections is not told to end",
       with(pod(kAlive, {running("a")}), [](auto& f) { f.deleting = true, f.drain_until = kNow + seconds(1); }), ""},
      {"but not for ever", with(pod(kAlive, {running("a")}), [](auto& f) { f.deleting = true, f.drain_until = kNow; }),
       "terminate:a/30"},
      {"all runs", pod(kAlive, {running("a"), running("b")}), ""},
      {"one is missing", pod(kAlive, {running("a"), fresh("b")}), "start:b"},
      {"a crash restarts at once", pod(kAlive, {ended("a", 1)}), "start:a"},
      {"success restarts too", pod(kAlive, {ended("a", 0)}), "start:a"},
      {"a crash waits out its back-off",
       pod(kAlive, {with(ended("a", 1), [](auto& c) { c.back_off_until = kNow + seconds(5); })}), " wait:a"},
      {"a back-off that is over", pod(kAlive, {with(ended("a", 1), [](auto& c) { c.back_off_until = kNow; })}), "start:a"},
      {"on failure: success ends the pod", pod(kAlive, {ended("a", 0, kMain, kOnFailure)}), "release -> succeeded"},
      {"on failure: failure restarts", pod(kAlive, {ended("a", 3, kMain, kOnFailure)}), "start:a"},
      {"never: failure ends the pod", pod(kAlive, {ended("a", 3, kMain, kNever)}), "release -> failed"},
      {"never: one still runs", pod(kAlive, {ended("a", 3, kMain, kNever), running("b", kMain, kNever)}), ""},
      {"a rule restarts what never would",
       pod(kAlive, {with(ended("a", 42, kMain, kNever), [](auto& c) { c.restart_by_rule = true; })}), "start:a"},

      {"init first", pod(kAbsent, {fresh("a")}, {initial("i"), initial("j")}), "create_sandbox start:i"},
      {"init in order", pod(kAlive, {fresh("a")}, {ended("i", 0, kInit, kOnFailure), initial("j")}), "start:j"},
      {"init still runs", pod(kAlive, {fresh("a")}, {running("i", kInit, kOnFailure), initial("j")}), ""},
      {"init done", pod(kAlive, {fresh("a")}, {ended("i", 0, kInit, kOnFailure), ended("j", 0, kInit, kOnFailure)}), "start:a"},
      {"init fails and comes again", pod(kAlive, {fresh("a")}, {ended("i", 1, kInit, kOnFailure)}), "start:i"},
      {"init fails for good", pod(kAlive, {fresh("a")}, {ended("i", 1, kInit, kNever)}), "release -> failed"},
      {"init is not run again beside main", pod(kAlive, {running("a")}, {initial("i")}), ""},

      {"a sidecar gates what follows",
       pod(kAlive, {fresh("a")}, {with(running("s", kSidecar), [](auto& c) { c.started = false; }), initial("i")}), ""},
      {"a started sidecar lets through", pod(kAlive, {fresh("a")}, {running("s", kSidecar), initial("i")}), "start:i"},
      {"a sidecar restarts beside main", pod(kAlive, {running("a")}, {ended("s", 0, kSidecar)}), "start:s"},
      {"sidecars end after main, last first",
       pod(kAlive, {ended("a", 0, kMain, kNever)}, {running("s", kSidecar), running("t", kSidecar)}),
       "terminate:t/30 -> succeeded"},
      {"then the one before", pod(kAlive, {ended("a", 0, kMain, kNever)}, {running("s", kSidecar), ended("t", 0, kSidecar)}),
       "terminate:s/30 -> succeeded"},

      {"after a reboot everything starts again", pod(kDead, {lost(running("a")), lost(ended("b", 0))}),
       "discard_sandbox create_sandbox start:a start:b"},
      {"and init too", pod(kDead, {lost(running("a"))}, {lost(ended("i", 0, kInit, kOnFailure))}),
       "discard_sandbox create_sandbox start:i"},
      {"what never runs twice has failed", pod(kDead, {lost(running("a", kMain, kNever))}), "release -> failed"},
      {"what had succeeded has succeeded", pod(kDead, {lost(ended("a", 0, kMain, kNever))}), "release -> succeeded"},
      {"a reboot during init of such a pod", pod(kDead, {fresh("a", kMain, kNever)}, {lost(running("i", kInit, kNever))}),
       "release -> failed"},
      {"on failure: what succeeded stays so",
       pod(kDead, {lost(ended("a", 0, kMain, kOnFailure)), lost(running("b", kMain, kOnFailure))}),
       "discard_sandbox create_sandbox start:b"},
      {"a sandbox that was lost", pod(kAbsent, {lost(running("a"))}), "create_sandbox start:a"},

      {"deletion stops all at once", with(pod(kAlive, {running("a"), running("b")}), deleted), "terminate:a/30 terminate:b/30"},
      {"with hooks first", with(pod(kAlive, {with(running("a"), [](auto& c) { c.has_pre_stop = true; })}), deleted),
       "run_pre_stop:a/30"},
      {"sidecars last", with(pod(kAlive, {running("a")}, {running("s", kSidecar)}), deleted), "terminate:a/30"},
      {"the end", with(pod(kAlive, {ended("a", 143)}), deleted), "release forget"},
      {"a pod that never was", with(pod(kAbsent, {fresh("a")}), deleted), "release forget"},
      {"a pod that had ended",
       with(pod(kAbsent, {lost(ended("a", 0))}), [](auto& f) { f.deleting = true, f.verdict = Verdict::succeeded; }),
       "release forget -> succeeded"},
      {"nothing starts while deleting", with(pod(kAlive, {ended("a", 1), running("b")}), deleted), "terminate:b/30"},
      {"no grace", with(pod(kAlive, {running("a")}), [](auto& f) { f.deleting = true, f.grace_seconds = 0; }), "kill:a"},
      {"not for sidecars either",
       with(pod(kAlive, {running("a")}, {running("s", kSidecar)}), [](auto& f) { f.deleting = true, f.grace_seconds = 0; }),
       "kill:a kill:s"},
      {"the hooks of sidecars run at the start",
       with(pod(kAlive, {running("a")},
                {running("s", kSidecar), with(running("t", kSidecar), [](auto& c) { c.has_pre_stop = true; })}),
            deleted),
       "terminate:a/30 run_pre_stop:t/30"},
      {"a sidecar's turn within what is left",
       with(pod(kAlive, {ended("a", 0)}, {running("s", kSidecar), running("t", kSidecar)}),
            [](auto& f) { f.deleting = true, f.end_deadline = kNow + seconds(11); }),
       "terminate:t/11"},
      {"the grace is the pod's: when it is over nobody waits for his turn",
       with(pod(kAlive, {with(running("a"), [](auto& c) { c.stopping = Stopping{.terminated = true, .deadline = kNow}; })},
                {running("s", kSidecar), with(running("t", kSidecar), [](auto& c) { c.stopping = Stopping{.deadline = kNow}; })}),
            [](auto& f) { f.deleting = true, f.end_deadline = kNow; }),
       "kill:a terminate:t/2 terminate:s/2"},
      {"an end within one second is that of all",
       with(pod(kAlive, {running("a"), running("b")}), [](auto& f) { f.deleting = true, f.grace_seconds = 1; }),
       "terminate:a/1 terminate:b/1"},

      {"liveness stops gracefully", pod(kAlive, {with(running("a"), [](auto& c) { c.ailment = Ailment::liveness_probe; })}),
       "terminate:a/30"},
      {"with its hook",
       pod(kAlive, {with(running("a"), [](auto& c) { c.ailment = Ailment::startup_probe, c.has_pre_stop = true; })}),
       "run_pre_stop:a/30"},
      {"in the probe's own time",
       pod(kAlive, {with(running("a"), [](auto& c) { c.ailment = Ailment::liveness_probe, c.ailment_grace_seconds = 3; })}),
       "terminate:a/3"},
      {"which is not a deletion's",
       with(pod(kAlive, {with(running("a"), [](auto& c) { c.ailment = Ailment::liveness_probe, c.ailment_grace_seconds = 3; })}),
            deleted),
       "terminate:a/30"},
      {"a failed postStart has no preStop",
       pod(kAlive, {with(running("a"), [](auto& c) { c.ailment = Ailment::post_start, c.has_pre_stop = true; })}),
       "terminate:a/30"},
      {"a new image", pod(kAlive, {with(running("a"), [](auto& c) { c.ailment = Ailment::definition_changed; })}),
       "terminate:a/30"},

      {"the node ends: what runs is told", with(pod(kAlive, {running("a")}, {running("s", kSidecar)}), node_ends),
       "terminate:a/30"},
      {"with its hook", with(pod(kAlive, {with(running("a"), [](auto& c) { c.has_pre_stop = true; })}), node_ends),
       "run_pre_stop:a/30"},
      {"sidecars after main", with(pod(kAlive, {ended("a", 143)}, {running("s", kSidecar)}), node_ends), "terminate:s/30"},
      {"nothing is started", with(pod(kAlive, {running("a"), fresh("b")}), node_ends), "terminate:a/30"},
      {"what has not begun stays so", with(pod(kAbsent, {fresh("a")}), node_ends), ""},
      {"a dead sandbox stays, too", with(pod(kDead, {lost(running("a"))}), node_ends), ""},
      {"what may run again does so later", with(pod(kAlive, {ended("a", 143)}), node_ends), "stop_sandbox"},
      {"a job that failed may, too", with(pod(kAlive, {ended("a", 143, kMain, kOnFailure)}), node_ends), "stop_sandbox"},
      {"a job that was done is done", with(pod(kAlive, {ended("a", 0, kMain, kOnFailure)}), node_ends), "release -> succeeded"},
      {"what may not has failed", with(pod(kAlive, {ended("a", 143, kMain, kNever)}), node_ends), "release -> failed"},
      {"an init container that was cut off", with(pod(kAlive, {fresh("a")}, {ended("i", 143, kInit, kOnFailure)}), node_ends),
       "stop_sandbox"},
      {"a deletion goes on", with(with(pod(kAlive, {ended("a", 0)}), deleted), node_ends), "release forget"},

      {"the deadline", with(pod(kAlive, {running("a")}), [](auto& f) { f.active_deadline = kNow; }), "terminate:a/30 -> failed"},
      {"refused", with(pod(kAbsent, {fresh("a")}), [](auto& f) { f.verdict = Verdict::failed; }), "release -> failed"},
  };
  for (const Row& row : rows) EXPECT_EQ(text(make_plan(row.observed)), row.want) << row.name;
}

TEST(Plan, stops_in_phases) {
  struct Row {
    const char* name;
    Stopping stopping;
    const char* want;
    std::optional<SteadyTime> again;
  };
  const SteadyTime later = kNow + seconds(7);
  const std::vector<Row> rows = {
      {"the hook runs", {.hook_running = true, .deadline = later}, "", later},
      {"the hook is done: the rest of the grace", {.deadline = later}, "terminate:a/7", {}},
      {"the hook took it all: a little more", {.hook_running = true, .deadline = kNow}, "terminate:a/2", {}},
      {"the signal was sent", {.terminated = true, .deadline = later}, "", later},
      {"and not heard", {.terminated = true, .deadline = kNow}, "kill:a", {}},
      {"killed", {.terminated = true, .killed = true, .deadline = kNow}, "", {}},
  };
  for (const Row& row : rows) {
    for (bool deleting : {true, false}) {
      ObservedPod observed =
          pod(kAlive, {with(running("a"), [&](auto& c) { c.stopping = row.stopping, c.ailment = Ailment::liveness_probe; })});
      observed.deleting = deleting;
      Plan plan = make_plan(observed);
      EXPECT_EQ(text(plan), row.want) << row.name;
      EXPECT_EQ(plan.again, row.again) << row.name;
    }
  }
}

TEST(Plan, a_sidecar_waits_for_its_turn_no_longer_than_the_pods_grace) {
  Stopping hook_done{.deadline = kNow + seconds(30)}, told{.terminated = true, .deadline = kNow + seconds(30)};
  auto observed = pod(kAlive, {with(running("a"), [&](auto& c) { c.stopping = told; })},
                      {running("s", kSidecar), with(running("t", kSidecar), [&](auto& c) { c.stopping = hook_done; })});
  observed.deleting = true;
  observed.end_deadline = kNow + seconds(30);
  Plan plan = make_plan(observed);
  EXPECT_EQ(text(plan), "");
  EXPECT_EQ(plan.again, observed.end_deadline);
  EXPECT_EQ(plan.end_deadline, observed.end_deadline);
  observed.end_deadline.reset();
  EXPECT_EQ(make_plan(observed).end_deadline, kNow + seconds(30)) << "it begins with the first look";
  observed.deleting = false;
  EXPECT_FALSE(make_plan(observed).end_deadline);
}

TEST(Plan, wakes_for_the_earliest_reason) {
  auto observed = pod(kAlive, {with(ended("a", 1), [](auto& c) { c.back_off_until = kNow + seconds(9); }),
                               with(ended("b", 1), [](auto& c) { c.back_off_until = kNow + seconds(4); })});
  observed.active_deadline = kNow + seconds(6);
  EXPECT_EQ(make_plan(observed).again, kNow + seconds(4));
}

TEST(Plan, says_whether_init_is_done) {
  EXPECT_FALSE(make_plan(pod(kAbsent, {fresh("a")}, {fresh("i", kInit)})).initialized);
  EXPECT_TRUE(make_plan(pod(kAbsent, {fresh("a")})).initialized);
  EXPECT_TRUE(make_plan(pod(kAlive, {running("a")}, {fresh("i", kInit)})).initialized);
}

}  // namespace
}  // namespace coracle::node
