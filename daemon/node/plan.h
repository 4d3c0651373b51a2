// SPDX-License-Identifier: Apache-2.0
// The plan for one pod: a pure function from the desired and the observed state to a list of steps. It contains all of
// Kubernetes' pod lifecycle (init containers, sidecars, restart policies and back-off, health, graceful termination) and does no
// I/O, so that each rule can be tested as a row in a table.
//   desired pod + sandbox + PodRecord ──observe──▶ ObservedPod ──plan──▶ Plan ──worker──▶ runtime
// The grace period belongs to the pod: it begins when the first container is terminated, and all containers end within it.
// preStop hooks run at once. Sidecars are terminated after the main containers have ended or when the period is over. A container
// whose termination begins late gets two seconds. When the node shuts down, pods are terminated in the same way but keep their
// phase if they may run again after the next start. The plan is level-based: each sync makes a new plan from the current facts,
// so that a failed step is planned again. Source: Kubernetes pod lifecycle, init containers, sidecar containers (KEP-753);
// kubelet's computePodActions (semantics), graceful node shutdown (KEP-2000).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"

namespace coracle::node {

enum class RestartPolicy : uint8_t { always, on_failure, never };

enum class Role : uint8_t {
  init,     // must end successfully before the next container starts
  sidecar,  // an init container with restartPolicy Always: the next container starts after it has started; it keeps running
  main,
  ephemeral,  // added to a running pod for debugging: started once, and the pod does not wait for its end
};

enum class Ailment : uint8_t { none, startup_probe, liveness_probe, post_start, definition_changed };

// Progress of the termination of one container.
//   pre_stop ──hook done, or grace period over──▶ terminating ──grace period over──▶ killed
struct Stopping {
  bool hook_running = false;
  bool terminated = false;  // the stop signal was sent
  bool killed = false;
  SteadyTime deadline;  // of the current phase
};

struct ObservedContainer {
  std::string name;
  Role role = Role::main;
  RestartPolicy policy = RestartPolicy::always;
  bool restart_by_rule = false;  // a restartPolicyRule of the container matches its exit code
  bool has_pre_stop = false;
  bool in_sandbox = false;  // the live sandbox contains an attempt of it
  bool ever_ran = false;    // in this sandbox or an earlier one
  bool running = false;
  std::optional<int> exit_code;  // of the newest attempt, if it has ended
  bool started = false;          // it runs, its startup probe has succeeded and its postStart hook has finished
  Ailment ailment = Ailment::none;
  std::string ailment_text;                      // the message of the probe or hook
  std::optional<int64_t> ailment_grace_seconds;  // replaces the pod's grace period for a restart because of `ailment`
  std::optional<SteadyTime> back_off_until;
  std::optional<Stopping> stopping;
};

enum class SandboxFact : uint8_t { absent, dead, alive };
enum class Verdict : uint8_t { none, succeeded, failed };

struct ObservedPod {
  SandboxFact sandbox = SandboxFact::absent;
  bool deleting = false;            // deletionTimestamp is set, or the pod is gone from the API
  Verdict verdict = Verdict::none;  // decided earlier: the pod ended, was refused, or passed its deadline
  bool initialized_before = false;  // main containers have run in this sandbox
  bool held_back = false;           // it waits for other pods: no sandbox is created
  int64_t grace_seconds = 30;
  std::optional<SteadyTime> end_deadline;  // end of the grace period, once that has begun
  std::optional<SteadyTime> active_deadline;
  std::optional<SteadyTime> node_ends_by;  // node shutdown: nothing is started, and containers must end by then
  std::optional<SteadyTime> drain_until;   // Services still send it connections: termination begins then at the latest
  std::vector<ObservedContainer> init;     // including sidecars, in order
  std::vector<ObservedContainer> main, ephemeral;
  SteadyTime now;
};

enum class StepKind : uint8_t {
  create_sandbox,
  start,         // the next attempt of the container
  run_pre_stop,  // starts its preStop hook; grace_seconds includes hook and termination
  terminate,     // send its stop signal; grace_seconds from now
  kill,
  discard_sandbox,  // removes a dead sandbox, which is replaced
  stop_sandbox,     // node shutdown: removes the sandbox; the next daemon creates another
  release,          // all containers have ended: saves the results and releases sandbox, network and volumes
  forget,           // released and deleted: removes the pod from the API and its files from this machine
};

struct Step {
  StepKind kind;
  std::string container;
  std::string why;  // for events and logs
  int64_t grace_seconds = 0;
  bool operator==(const Step&) const = default;
};

struct Plan {
  std::vector<Step> steps;
  Verdict verdict = Verdict::none;
  bool initialized = false;             // all init containers have ended and all sidecars have started
  std::vector<std::string> backed_off;  // containers in CrashLoopBackOff
  bool past_deadline = false;
  bool ended_with_node = false;            // the verdict is a consequence of the node shutdown
  std::optional<SteadyTime> end_deadline;  // as in ObservedPod, or set when the period begins
  std::optional<SteadyTime> again;         // time of the next sync, if nothing happens before
};

Plan make_plan(const ObservedPod& observed);

// Whether an ended container with `exit_code` must be restarted.
bool should_restart(const ObservedContainer& container);

}  // namespace coracle::node
