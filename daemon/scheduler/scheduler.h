// SPDX-License-Identifier: Apache-2.0
// Scheduler: gives each pod without a node the best node, or says why there is none.
//   informers (pods, nodes) ──▶ Cluster + SchedulingQueue ──▶ decide (pure) ──▶ POST binding ──▶ event
//                                                                         └──▶ condition PodScheduled=False, event
// A pod no node fits is parked until something relevant changes; nothing is polled.
//   Scheduler scheduler(client, informers, events);  informers.start();  scheduler.start();
#pragma once

#include <memory>

#include "daemon/event/recorder.h"
#include "daemon/informer/informers.h"
#include "store/client/client.h"

namespace coracle::scheduler {

inline constexpr std::string_view kSchedulerName = "default-scheduler";

class Scheduler {
 public:
  // Informers that are not started yet. All arguments must outlive it.
  Scheduler(Client& client, Informers& informers, EventSink& events, const Clock& clock = system_clock());
  ~Scheduler();  // stops the informers too: their handlers name it

  void start();  // one thread, which decides once the caches are level

  // For tests, instead of start(): decides about one pod on the caller's thread. False when none is due.
  bool turn();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::scheduler
