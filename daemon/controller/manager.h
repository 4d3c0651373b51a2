// SPDX-License-Identifier: Apache-2.0
// Manager: runs all controllers on few threads over one queue whose keys carry the controller's name.
//   Manager manager(client, informers, events, config);   // subscribes
//   informers.start();
//   manager.start();                                       // works once the caches are level
// Destroying it stops the workers, and the informers, whose handlers are the controllers'.
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
  // Informers that are not started yet. All arguments must outlive it.
  Manager(Client& client, Informers& informers, EventSink& events, const schema::CatalogSource& catalogs, Config config,
          const Clock& clock = system_clock());
  ~Manager();

  void start(int workers = kWorkers);

  // The wall clock jumped: what waits for a moment of it is looked at again. Thread-safe, does not block.
  void clock_was_set();

  // For tests, instead of start(): works on what is due now, on the caller's thread. False when nothing was.
  bool turn();

  // The queue, to count what becomes of the keys of each controller, by its name. May outlive the manager.
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
