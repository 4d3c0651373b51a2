// SPDX-License-Identifier: Apache-2.0
// Probes: runs the startup, liveness and readiness probes of running containers when they are due, and evaluates the results.
// Each running probe has a thread of its own, so that one that hangs does not delay the others. When the verdict on a container
// changes, its pod is added to the workers' queue; Probes does nothing else about it.
// The first probe runs as soon as the container does, so most programs do not serve yet. Within the first second, a startup or
// readiness probe that failed is therefore repeated after 0.1, 0.2, 0.4 and 0.8 s: a program that serves then does not wait for
// the next period. Failures of these repetitions neither count nor are they reported. kubelet, too, probes the readiness of a
// container that is not ready between periods: whenever it looks at the pod.
//   worker ──watch(container)──▶ entries ──due──▶ Actions ──▶ ProbeCount (pure) ──changed──▶ queue.add(pod)
// Source: Kubernetes core/v1 Probe; kubelet's prober (semantics: thresholds, startup first, initial results).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/node/action.h"
#include "daemon/node/task_pool.h"
#include "daemon/queue/work_queue.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"

namespace coracle::node {

enum class ProbeKind : uint8_t { startup, liveness, readiness };
const char* probe_field(ProbeKind kind);  // "startupProbe"

struct ProbeTiming {
  std::chrono::seconds initial_delay{0}, period{10}, timeout{1};
  int success_threshold = 1, failure_threshold = 3;
  static ProbeTiming of(const json::value& probe);
};

// Counts consecutive results against the thresholds. Pure.
class ProbeCount {
 public:
  ProbeCount(const ProbeTiming& timing, std::optional<bool> initial) : timing_(timing), result_(initial) {}
  bool add(bool success);                                 // returns whether the result has changed
  std::optional<bool> result() const { return result_; }  // nullopt: not known yet

 private:
  ProbeTiming timing_;
  std::optional<bool> result_;
  bool last_ = false;
  int in_a_row_ = 0;
};

struct ProbeVerdict {
  bool startup_passed = true, ready = true;
  std::optional<ProbeKind> failed;  // startup or liveness: the container must be restarted
  std::string text;
};

struct ProbedContainer {
  std::string uid, name, id;  // pod uid, container name, runtime id (new for every attempt)
  json::value spec;           // of the container: a copy, so that old versions of the pod can be freed
  std::string address;
  SteadyTime started;
  bool was_started = false, was_ready = false;  // earlier results, for a container that is adopted
};

class Probes {
 public:
  struct Warning {
    const std::string& uid;  // of the pod
    const json::value& container;
    std::string_view reason;  // of the event
    std::string text;
  };
  // `changed` is called with the uid of a pod whose verdict may differ. `warned` is called for every failure (Unhealthy) and for
  // a success with a warning (ProbeWarning).
  Probes(const Actions& actions, const Clock& clock, std::function<void(const std::string& uid)> changed,
         std::function<void(const Warning&)> warned);
  ~Probes();

  void start();  // threads are created with the first probe
  bool watches(const std::string& uid, const std::string& id) const;
  void watch(ProbedContainer container);  // does nothing if the container is watched already
  void forget(const std::string& uid, const std::string& id);
  void forget_pod(const std::string& uid);
  ProbeVerdict verdict(const std::string& uid, const std::string& id) const;

  // Runs one due probe on the caller's thread; returns false if none is due. For tests.
  bool run_one();

 private:
  struct Probe;
  struct Entry;
  struct State {
    std::map<std::string, std::shared_ptr<Entry>> entries;  // by uid/id
    bool started = false;
    std::jthread dispatcher;
  };
  void dispatch();
  void run(const Key& key);
  void finish(const std::shared_ptr<Entry>& entry, ProbeKind kind, const ActionResult& result, bool early);

  const Actions& actions_;
  const Clock& clock_;
  std::function<void(const std::string&)> changed_;
  std::function<void(const Warning&)> warned_;
  std::stop_source stop_;
  WorkQueue due_;  // keys: {uid/id, kind}
  Guarded<State> state_;
  TaskPool running_;  // its tasks use the members above
};

}  // namespace coracle::node
