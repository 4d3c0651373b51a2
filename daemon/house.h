// SPDX-License-Identifier: Apache-2.0
// The house: every room of one running coracled, built and wired. A table of contents: with house.cc the only place that
// names both sides of a seam. Members stand in the order in which they start; they stop in reverse.
//
//   engine ◀─ registry ◀─ client ─▶ informers ─▶ controllers, scheduler, network, agent ─▶ runtime
//                 ▲                                                                  │
//                api ─────────────── streams, images ────────────────────────────────┘
//
// Threads: README.md, "Threads".
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "daemon/api/server.h"
#include "daemon/backup/keeper.h"
#include "daemon/config.h"
#include "daemon/controller/manager.h"
#include "daemon/event/recorder.h"
#include "daemon/informer/informers.h"
#include "daemon/network/network.h"
#include "daemon/node/agent.h"
#include "daemon/order/gate.h"
#include "daemon/registry/local.h"
#include "daemon/registry/registry.h"
#include "daemon/scheduler/scheduler.h"
#include "runtime/base/guarded.h"
#include "runtime/runtime.h"
#include "store/engine/engine.h"
#include "store/schema/catalog_source.h"

namespace coracle {

// What the configuration left to the machine.
struct Facts {
  std::string node_name, node_address;
};

class House {
 public:
  // Makes the directories, opens the store and the network, and finds the pods that run; serves nothing yet. Errors:
  // unavailable when another process has the store; internal, naming the file, when the store is damaged; those of the rooms.
  static Result<std::unique_ptr<House>> build(const Config& config);
  ~House();  // stops serving and acting; pods go on
  House(const House&) = delete;
  House& operator=(const House&) = delete;

  // Blocks until every room has seen what the store holds: ready when it returns. Errors: cancelled by `stop`; an address
  // that cannot be bound.
  Result<void> start(std::stop_token stop);

  // Nothing is started any more, and the pods that run end by their own rules: see node::Agent. Also before start(), which then
  // starts what the pods' end needs and no more.
  void end_pods();
  // After both: blocks until they have ended, or shutdownGracePeriod is over. `tick` is called every second or so.
  void wait_for_end_of_pods(const std::function<void()>& tick);

  // Becomes readable when a restored store waits to be adopted: then close this house and build another.
  const Fd& restored() const { return restored_; }

  // Comes back when the rooms that everything passes through give their locks back: what the watchdog waits for.
  void answer() const;

  // The wall clock jumped: who waits for a time of day looks again.
  void clock_was_set() const {
    controllers_->clock_was_set();
    agent_->clock_was_set();
    server_->clock_was_set();
  }

  // How many requests and changes there were: what work there was. Counts up only.
  uint64_t work_done() const { return asked_.load(std::memory_order_relaxed) + engine_->revision(); }
  // Becomes readable when somebody asks for something, for the first time since listen_for_work().
  const Fd& stirred() const { return stirred_; }
  void listen_for_work() const;
  // The work is over for a while: what was kept in memory for more of it is let go. Takes some milliseconds.
  void rest() const;

  std::string summary() const;  // "node NAME at https://ADDRESS:PORT"
  // By which others reach this machine; where there is no network, the pods' gateway.
  const std::string& node_address() const { return facts_.node_address; }
  // A sentence about the limits that this kernel cannot enforce. "": none.
  std::string missing_limits() const { return runtime_->enforcement().missing; }

 private:
  House(const Config& config, Facts facts) : config_(config), facts_(std::move(facts)) {}
  Result<void> keep_node_name();
  Result<void> furnish();
  controller::Config controller_config() const;
  void make_deciders();
  void stop_deciders();
  uint16_t port() const { return server_->bound().empty() ? config_.port : server_->bound().front().port; }

  const Config config_;
  Facts facts_;
  bool ends_ = false;  // end_pods() was called
  std::atomic<bool> settled_ = false;
  Fd restored_, stirred_;
  std::atomic<uint64_t> asked_ = 0;              // requests
  mutable std::atomic<bool> listening_ = false;  // the next one is to be told
  const schema::CatalogSource catalogs_;         // outlives all that works with kinds
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<backup::Keeper> keeper_;
  std::unique_ptr<registry::Registry> registry_;
  std::unique_ptr<registry::LocalClient> client_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<runtime::Runtime> runtime_;
  std::unique_ptr<Informers> informers_;
  std::unique_ptr<network::Network> network_;
  std::unique_ptr<order::Gate> gate_;
  std::unique_ptr<node::Agent> agent_;
  Guarded<std::shared_ptr<const WorkQueue>> controllers_queue_;  // what /metrics counts, once there are controllers
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<controller::Manager> controllers_;
  scheduler::Configuration scheduler_configuration_ = scheduler::default_configuration();
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  Guarded<const scheduler::Scheduler*> explaining_{nullptr};  // whom the API asks about placement, while there is one
};

// Ends every pod of this machine by its own rules, as when the machine ends, and takes our network away unless it does. Errors:
// conflict while a daemon runs.
Result<void> end_pods(const Config& config, bool machine_ends);

// Kills every pod of this machine and takes our network away. Errors: unavailable while a daemon runs.
Result<void> remove_pods(const Config& config);

// Begins with an empty store where the present one is damaged; the damaged one is kept beside it. Errors: unavailable while a
// daemon runs.
Result<void> set_aside_damaged(const Config& config);

}  // namespace coracle
