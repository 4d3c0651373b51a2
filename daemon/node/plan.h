// SPDX-License-Identifier: Apache-2.0
// What to do about one pod: a pure function from what is wanted and what is there to a list of steps. It holds the whole
// of Kubernetes' pod lifecycle (init containers, sidecars, restart policies and back-off, health, graceful termination)
// and nothing that touches the machine, so that every rule of it is a row in a table of tests.
//   desired pod + sandbox + what the worker remembers ──observe──▶ PodFacts ──plan──▶ Plan ──worker──▶ runtime
// The grace period is the pod's: it begins when the first of its containers is told to end, and all of them end within it. Hooks
// run at once; sidecars are told when those whom they serve have ended, or the period has. Who is told late gets two seconds.
// When the node ends, pods end in the same way, but stay what they are: those that may run again do so when it is back.
// Level-based: a plan is made anew from the facts at each look; steps that could not be carried out simply come again.
// Source: Kubernetes pod lifecycle, init containers, sidecar containers (KEP-753); kubelet's computePodActions (semantics),
// graceful node shutdown (KEP-2000).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"

namespace coracle::node {

enum class RestartPolicy : uint8_t { always, on_failure, never };

enum class Role : uint8_t {
  init,     // runs to its end before what follows
  sidecar,  // an init container with restartPolicy Always: must have started before what follows, runs beside it
  main,
  ephemeral,  // added to look into a pod that runs: started once, and nothing waits for it
};

enum class Ailment : uint8_t { none, startup_probe, liveness_probe, post_start, definition_changed };

// A container that is being stopped, as far as the worker has come.
//   pre_stop ──hook done, or grace over──▶ terminating ──grace over──▶ killed
struct Stopping {
  bool hook_running = false;
  bool terminated = false;  // the stop signal was sent
  bool killed = false;
  SteadyTime deadline;  // of the phase it is in
};

struct ContainerFacts {
  std::string name;
  Role role = Role::main;
  RestartPolicy policy = RestartPolicy::always;
  bool restart_by_rule = false;  // its exit code matches a restart rule of its own
  bool has_pre_stop = false;
  bool in_sandbox = false;  // there is an attempt at it in the sandbox that lives
  bool ever_ran = false;    // in this sandbox or one before
  bool running = false;
  std::optional<int> exit_code;  // of the newest attempt, when it has ended
  bool started = false;          // running, its startup probe has passed and its postStart hook is done
  Ailment ailment = Ailment::none;
  std::string ailment_text;                      // what the probe or hook said
  std::optional<int64_t> ailment_grace_seconds;  // instead of the pod's, when the ailment ends it
  std::optional<SteadyTime> back_off_until;
  std::optional<Stopping> stopping;
};

enum class SandboxFact : uint8_t { absent, dead, alive };
enum class Verdict : uint8_t { none, succeeded, failed };

struct PodFacts {
  SandboxFact sandbox = SandboxFact::absent;
  bool deleting = false;            // deletionTimestamp is set, or the pod is gone from the API
  Verdict verdict = Verdict::none;  // decided before: the pod ended, was refused, ran past its deadline
  bool initialized_before = false;  // main containers have run in this sandbox
  bool held_back = false;           // it waits for other pods: no sandbox is made for it
  int64_t grace_seconds = 30;
  std::optional<SteadyTime> end_deadline;  // when its grace period is over, once that has begun
  std::optional<SteadyTime> active_deadline;
  std::optional<SteadyTime> node_ends_by;  // the node ends: nothing is started, and what runs is ended by then
  std::optional<SteadyTime> drain_until;   // Services still send it connections: nothing is told to end before
  std::vector<ContainerFacts> init;        // with the sidecars, in order
  std::vector<ContainerFacts> main, ephemeral;
  SteadyTime now;
};

enum class StepKind : uint8_t {
  create_sandbox,
  start,         // the container's next attempt
  run_pre_stop,  // begin its preStop hook; grace_seconds for hook and termination together
  terminate,     // send its stop signal; grace_seconds from now
  kill,
  discard_sandbox,  // a dead one, to be replaced
  stop_sandbox,     // the node ends: give the sandbox back; the pod goes on with another when the node is back
  release,          // everything has ended: keep the results, give back the sandbox, its network and its volumes
  forget,           // released and deleted: remove the pod from the API, and what is left of it here
};

struct Step {
  StepKind kind;
  std::string container;
  std::string why;  // for the event and the log
  int64_t grace_seconds = 0;
  bool operator==(const Step&) const = default;
};

struct Plan {
  std::vector<Step> steps;
  Verdict verdict = Verdict::none;
  bool initialized = false;             // all init containers are done, sidecars started
  std::vector<std::string> backed_off;  // containers that wait out their CrashLoopBackOff
  bool past_deadline = false;
  bool ended_with_node = false;            // what it ended as, it did because the node ends
  std::optional<SteadyTime> end_deadline;  // as in the facts, or it begins now
  std::optional<SteadyTime> again;         // look again then, if nothing happens before
};

Plan make_plan(const PodFacts& facts);

// Whether a container that has ended with `exit_code` is to run again.
bool should_restart(const ContainerFacts& container);

}  // namespace coracle::node
