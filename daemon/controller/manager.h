// SPDX-License-Identifier: Apache-2.0
// Manager: runs all controllers on a few threads with one queue, whose keys contain the controller's name.
//   Manager manager(client, informers, events, config);   // subscribes
//   informers.start();
//   manager.start();                                       // works after the caches have synced
// The destructor stops the workers and the informers, because the informers call the controllers' handlers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/controller/controller.h"

namespace coracle::controller {

constexpr int kWorkers = 2;

class Manager {
 public:
  // The informers must not have started. All arguments must outlive the manager.
  Manager(Client& client, Informers& informers, EventSink& events, const schema::CatalogSource& catalogs, Config config,
          const Clock& clock = system_clock());
  ~Manager();

  void start(int workers = kWorkers);

  // The wall clock was set: keys that wait for a wall time are reconciled again. Thread-safe, does not block.
  void clock_was_set();

  // For tests, instead of start(): processes the keys that are due, on the caller's thread. False if there were none.
  bool run_once();

  // The queue, for metrics of each controller's keys. May outlive the manager.
  std::shared_ptr<const WorkQueue> queue() const { return queue_; }

 private:
  void add(std::unique_ptr<Controller> controller);
  Result<Outcome> reconcile(const Key& tagged);
  const Config config_;
  Informers& informers_;
  std::shared_ptr<WorkQueue> queue_;
  std::map<std::string, std::unique_ptr<Controller>, std::less<>> controllers_;
  std::vector<std::jthread> workers_;
};

}  // namespace coracle::controller
