// SPDX-License-Identifier: Apache-2.0
// PodLife: what becomes of a pod on a hollow node, where nothing is run. Pure: a pod as the API has it and the time go in; the
// status it is to have, when to look again, and whether it may be taken away come out.
//
//   waiting ──start-after──▶ running ──run-for──▶ ended ──(restartPolicy)──▶ waiting …
//        any of them ──deletionTimestamp──▶ stopping ──stop-after, at most the grace period──▶ stopped: removed
//
// Annotations on the pod say otherwise than "runs and is ready until it is deleted":
//   hollow/start-after: "3"     seconds until its containers run (else the node's own delay)
//   hollow/ready: "false"       its containers are not ready; may be changed while it runs
//   hollow/ready-after: "3"     seconds from running to ready
//   hollow/run-for: "3"         seconds until its containers end
//   hollow/exit-code: "7"       what they end with, else 0. Alone it means: as soon as they run
//   hollow/exit-code.NAME: "7"  for one of its containers, where they differ
//   hollow/stop-after: "3"      seconds from being asked to go until it has gone; at most its grace period
#pragma once

#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "store/object/object.h"

namespace coracle::hollow {

struct Place {  // where the pod is
  std::string host_ip, pod_ip;
  std::chrono::milliseconds start_delay{200};
};

struct Plan {
  json::object status;              // all that a kubelet says of the pod; empty: leave it as it is
  std::optional<SteadyTime> again;  // when time alone changes something
  bool gone = false;                // its containers are no more and it is being deleted: remove it
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
  std::optional<SteadyTime> stop_at_;  // it was asked to go
  bool killed_ = false;                // it ended because it was asked to
  std::optional<SteadyTime> again_;
  bool ready_ = false;
  int restarts_ = 0;
  WallTime started_{}, finished_{};  // of the containers' newest run
};

}  // namespace coracle::hollow
