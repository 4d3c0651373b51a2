// SPDX-License-Identifier: Apache-2.0
// PodLife: the life cycle of a pod on a hollow node, which runs nothing. Pure: the input is the API's pod and the time; the
// output is the desired status, the time of the next check, and whether the pod may be removed.
//
//   waiting ──start-after──▶ running ──run-for──▶ ended ──(restartPolicy)──▶ waiting …
//        any of them ──deletionTimestamp──▶ stopping ──stop-after, at most the grace period──▶ stopped: removed
//
// Annotations on the pod change the default, which is "runs and is ready until it is deleted":
//   hollow/start-after: "3"     seconds until its containers run (default: the node's delay)
//   hollow/ready: "false"       its containers are not ready; may be changed while it runs
//   hollow/ready-after: "3"     seconds from running to ready
//   hollow/run-for: "3"         seconds until its containers end
//   hollow/exit-code: "7"       their exit code (default: 0). Without run-for, they end as soon as they run
//   hollow/exit-code.NAME: "7"  for one of its containers, if they differ
//   hollow/stop-after: "3"      seconds from the deletion until it is gone; at most its grace period
#pragma once

#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "store/object/object.h"

namespace coracle::hollow {

struct Place {  // the pod's state
  std::string host_ip, pod_ip;
  std::chrono::milliseconds start_delay{200};
};

struct Plan {
  json::object status;              // the kubelet's part of the status; empty: no change
  std::optional<SteadyTime> again;  // when time alone changes something
  bool gone = false;                // its containers have ended and it is being deleted: remove it
};

class PodLife {
 public:
  explicit PodLife(Place place) : place_(std::move(place)) {}
  Plan look(const Object& pod, const Clock& clock);

 private:
  enum class Step { unseen, waiting, running, ended };
  void begin(const Object& pod, const Clock& clock);
  void go_on(const Object& pod, const Clock& clock);
  bool stopped(const Object& pod, SteadyTime now);
  json::object status(const Object& pod, const Clock& clock) const;
  json::object container_status(const Object& pod, const json::value& container, std::string_view role) const;
  json::array conditions(const Object& pod, WallTime now) const;
  bool containers_ready(const Object& pod, SteadyTime now) const;

  Place place_;
  Step step_ = Step::unseen;
  SteadyTime since_{};                 // when the step began
  std::optional<SteadyTime> stop_at_;  // set by the deletion
  bool killed_ = false;                // it ended because of the deletion
  std::optional<SteadyTime> again_;
  bool ready_ = false;
  int restarts_ = 0;
  WallTime started_{}, finished_{};  // of the last run of the containers
};

}  // namespace coracle::hollow
