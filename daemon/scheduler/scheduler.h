// SPDX-License-Identifier: Apache-2.0
// Scheduler: binds each pending pod to the best node, or reports why there is none.
//   informers (pods, nodes, claims, ...) ──▶ Cluster + SchedulingQueue ──▶ decide (pure) ──▶ POST binding ──▶ event
//                                                                    └──▶ condition PodScheduled=False, event; victims deleted
// A pod that fits no node is parked until an event that could help; there is no polling.
//   Scheduler scheduler(client, informers, events);  informers.start();  scheduler.start();
#pragma once

#include <memory>

#include "daemon/event/recorder.h"
#include "daemon/informer/informers.h"
#include "daemon/scheduler/configuration.h"
#include "store/client/client.h"

namespace coracle::scheduler {

class Scheduler {
 public:
  // The informers must not have started. All arguments must outlive the scheduler.
  Scheduler(Client& client, Informers& informers, EventSink& events, Configuration configuration = default_configuration(),
            const Clock& clock = system_clock());
  ~Scheduler();  // stops the informers too, because they call the scheduler's handlers

  void start();  // starts one thread, which schedules after the caches have synced

  // The evaluation of the pod on all nodes; a pod that is on a node is evaluated as if it were not. Thread-safe; delays the
  // scheduler by one decision. Does not block otherwise.
  //   {pod, scheduler, state: "scheduled" | "gated" | "active" | "deciding" | "backing off" | "waiting" | "binding volumes" |
  //      "finished" | "not ours" | "new", node: "" or the pod's node, nominatedNode, attempts,
  //    nodes: [{name, fits, filters: [{plugin, ok, reasons: [{text, figures}]}],
  //             scores: [{plugin, raw, normalized, weight, total}], total}],
  //    best: the node that the pod would get now, "" if none; then also message, missing: [text], cures: [text],
  //    preemption: {node, victims: [namespace/name]}}
  json::value explain(const Object& pod) const;

  // For tests, instead of start(): schedules one pod on the caller's thread. False if none is due.
  bool run_once();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::scheduler
