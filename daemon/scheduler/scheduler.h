// SPDX-License-Identifier: Apache-2.0
// Scheduler: gives each pod without a node the best node, or says why there is none.
//   informers (pods, nodes, claims, ...) ──▶ Cluster + SchedulingQueue ──▶ decide (pure) ──▶ POST binding ──▶ event
//                                                                    └──▶ condition PodScheduled=False, event; victims deleted
// A pod that no node fits is parked until something happens that could help it; nothing is polled.
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
  // Informers that are not started yet. All arguments must outlive it.
  Scheduler(Client& client, Informers& informers, EventSink& events, Configuration configuration = default_configuration(),
            const Clock& clock = system_clock());
  ~Scheduler();  // stops the informers too: their handlers name it

  void start();  // one thread, which decides once the caches are level

  // Where the pod could stand now, and why not elsewhere; for one that stands somewhere already, as if it did not. Thread-safe;
  // holds up the scheduler for as long as one decision takes. Does not block otherwise.
  //   {pod, scheduler, state: "scheduled" | "gated" | "active" | "deciding" | "backing off" | "waiting" | "binding volumes" |
  //      "finished" | "not ours" | "new", node: "" or where it stands, nominatedNode, attempts,
  //    nodes: [{name, fits, filters: [{plugin, ok, reasons: [{text, figures}]}],
  //             scores: [{plugin, raw, normalized, weight, total}], total}],
  //    best: the node it would get now, "" when none; then also message, missing: [text], cures: [text],
  //    preemption: {node, victims: [namespace/name]}}
  json::value explain(const Object& pod) const;

  // For tests, instead of start(): decides about one pod on the caller's thread. False when none is due.
  bool turn();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::scheduler
