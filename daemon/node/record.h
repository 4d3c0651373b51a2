// SPDX-License-Identifier: Apache-2.0
// What the worker remembers about a pod between two looks, and how that and the pod become the facts that the plan reads.
// Everything here can be lost: a new daemon finds it again in the runtime (attempts, exits, metadata) and in the pod's
// status in the API (restart counts, last states, readiness).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/node/back_off.h"
#include "daemon/node/plan.h"
#include "daemon/node/pod.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/runtime.h"
#include "store/object/object_ptr.h"

namespace coracle::node {

enum class HookState : uint8_t { none, running, done, failed };

struct Hook {
  HookState state = HookState::none;
  std::string text;  // why it failed
};

// What the runtime keeps for us beside a container, so that it can be understood without its pod.
struct ContainerMark {
  std::string name, image, image_id, stop_signal, definition, termination_policy;
  int attempt = 0;
  static ContainerMark from_text(std::string_view text);
  std::string to_text() const;
};

// The same for a sandbox: enough to end it properly when its pod is gone.
struct SandboxMark {
  Key pod;
  std::string uid, created;
  int64_t grace_seconds = 30;
  bool host_network = false, is_static = false;
  uint32_t first_id = 0;  // of its range of the host's ids; 0: it has the host's users
  static SandboxMark from_text(std::string_view text);
  std::string to_text() const;
};

struct ContainerRecord {
  explicit ContainerRecord(std::string name_) : name(std::move(name_)) {}

  std::string name;
  int attempt = -1;         // the newest one that was begun, here or by a daemon before; -1: none
  bool in_sandbox = false;  // it is one of the sandbox that lives
  bool running = false;
  WallTime started_at;
  std::optional<json::object> terminated;  // how the newest attempt ended: ContainerStateTerminated
  std::optional<json::object> last;        // and the one before it
  SteadyTime ended_at;                     // when we take the newest attempt to have ended
  ContainerMark mark;                      // of the newest attempt
  std::string waiting_reason, waiting_message;
  BackOff back_off;
  Hook post_start, pre_stop;
  std::optional<Stopping> stopping;
  bool started = false, ready = false;  // as the probes said last
  Ailment ailment = Ailment::none;
  std::string ailment_text;

  std::string id() const { return name + "-" + std::to_string(attempt); }
  int exit_code() const;
};

struct PodRecord {
  std::string uid;
  Key key;
  std::vector<ContainerRecord> containers;  // as ContainerIndex::all(); only ever added to
  SandboxFact sandbox = SandboxFact::absent;
  bool network_known = false;
  std::vector<std::string> ips;
  Verdict verdict = Verdict::none;
  std::string verdict_reason, verdict_message;  // of the pod: "DeadlineExceeded", "OutOfcpu", …
  std::optional<int64_t> end_grace_seconds;     // for its end, when that is less than the pod's own
  std::optional<SteadyTime> end_deadline;       // the plan said so last
  bool held_back = false;                       // it waits for other pods
  bool initialized = false;                     // the plan said so last
  bool released = false;                        // sandbox, network and volumes were given back
  bool volumes_ready = false;
  int containers_begun = 0;  // by this daemon
  std::optional<SteadyTime> active_deadline;
  std::optional<SteadyTime> drain_until;  // Services still send it connections; not later than this is it told to end
  std::optional<WallTime> start_time;

  ContainerRecord* find(std::string_view name);
  const ContainerRecord* find(std::string_view name) const;

  mutable std::map<std::string, size_t, std::less<>> by_name;  // find()'s: where in `containers`
  mutable size_t indexed = 0;                                  // so many of them are in by_name
};

// Brings the record's list of containers level with the pod, and takes what only the API still knows: restart counts,
// last states, readiness, the start time, an end that was decided.
void adopt_status(PodRecord& record, const json::value& pod, const Clock& clock);

// `node_ends_by`: see PodFacts; no period of the pod's goes on after it.
PodFacts facts_of(const PodRecord& record, const json::value& pod, bool gone, SteadyTime now,
                  std::optional<SteadyTime> node_ends_by = std::nullopt);

// What may end last, and what is never evicted: system-cluster-critical and system-node-critical. Source: KEP-2000.
bool is_critical(const json::value& pod);

// What of a container's definition may change while it runs: when this does, it is restarted.
std::string definition_of(const json::value& container);

}  // namespace coracle::node
