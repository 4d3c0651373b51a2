// SPDX-License-Identifier: Apache-2.0
// The worker's state of a pod between two syncs, and its conversion to the facts that the plan reads. The state may be lost: a
// new daemon restores it from the runtime (attempts, exit codes, metadata) and from the pod's status in the API (restart counts,
// last states, readiness).
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
  std::string text;  // the reason of a failure
};

// Metadata that the runtime stores with a container, so that the container can be handled without its pod.
struct ContainerMark {
  std::string name, image, image_id, stop_signal, definition, termination_policy;
  int attempt = 0;
  static ContainerMark from_text(std::string_view text);
  std::string to_text() const;
};

// Metadata of a sandbox: enough to terminate it gracefully after its pod was deleted.
struct SandboxMark {
  Key pod;
  std::string uid, created;
  int64_t grace_seconds = 30;
  bool host_network = false, is_static = false;
  uint32_t first_id = 0;  // of its range of host ids; 0: no user namespace
  static SandboxMark from_text(std::string_view text);
  std::string to_text() const;
};

struct ContainerRecord {
  explicit ContainerRecord(std::string name_) : name(std::move(name_)) {}

  std::string name;
  int attempt = -1;         // the newest attempt, also of an earlier daemon; -1: none
  bool in_sandbox = false;  // the live sandbox contains it
  bool running = false;
  WallTime started_at;
  std::optional<json::object> terminated;  // ContainerStateTerminated of the newest attempt
  std::optional<json::object> last;        // of the attempt before it
  SteadyTime ended_at;                     // when the newest attempt ended, as far as known
  ContainerMark mark;                      // of the newest attempt
  std::string waiting_reason, waiting_message;
  BackOff back_off;
  Hook post_start, pre_stop;
  std::optional<Stopping> stopping;
  bool started = false, ready = false;  // as the probes last reported
  Ailment ailment = Ailment::none;
  std::string ailment_text;

  std::string id() const { return name + "-" + std::to_string(attempt); }
  int exit_code() const;
};

struct PodRecord {
  std::string uid;
  Key key;
  std::vector<ContainerRecord> containers;  // in the order of ContainerIndex::all(); entries are only added
  SandboxFact sandbox = SandboxFact::absent;
  bool network_known = false;
  std::vector<std::string> ips;
  Verdict verdict = Verdict::none;
  std::string verdict_reason, verdict_message;  // of the pod: "DeadlineExceeded", "OutOfcpu", …
  std::optional<int64_t> end_grace_seconds;     // grace period for its termination, if shorter than the pod's own
  std::optional<SteadyTime> end_deadline;       // as in the last plan
  bool held_back = false;                       // it waits for other pods
  bool initialized = false;                     // as in the last plan
  bool released = false;                        // sandbox, network and volumes were released
  bool volumes_ready = false;
  int containers_begun = 0;  // by this daemon
  std::optional<SteadyTime> active_deadline;
  std::optional<SteadyTime> drain_until;  // Services still send it connections; termination begins then at the latest
  std::optional<WallTime> start_time;

  ContainerRecord* find(std::string_view name);
  const ContainerRecord* find(std::string_view name) const;

  mutable std::map<std::string, size_t, std::less<>> by_name;  // index of find(): positions in `containers`
  mutable size_t indexed = 0;                                  // number of entries that are in by_name
};

// Adds the pod's new containers to the record and restores what only the API has: restart counts, last states, readiness, start
// time, and a verdict.
void adopt_status(PodRecord& record, const json::value& pod, const Clock& clock);

// `node_ends_by`: see ObservedPod; no grace period extends beyond it.
ObservedPod observed_pod(const PodRecord& record, const json::value& pod, bool gone, SteadyTime now,
                         std::optional<SteadyTime> node_ends_by = std::nullopt);

// Whether the priority class is system-cluster-critical or system-node-critical. Such pods end last in a node shutdown and are
// never evicted. Source: KEP-2000.
bool is_critical(const json::value& pod);

// The mutable part of a container's definition. A running container is restarted when it changes.
std::string definition_of(const json::value& container);

}  // namespace coracle::node
