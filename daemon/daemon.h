// SPDX-License-Identifier: Apache-2.0
// Daemon: the composition root of the daemon: creates and connects all components. With daemon.cc it is the only file that refers
// to both sides of an interface between components. Members are declared in the order of their dependencies and destroyed in
// reverse.
//
//   engine ◀─ registry ◀─ client ─▶ informers ─▶ controllers, scheduler, network, agent ─▶ runtime
//                 ▲                                                                  │
//                api ─────────────── streams, images ────────────────────────────────┘
//
// Threads: daemon/README.md, "Threads".
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "daemon/api/server.h"
#include "daemon/backup/store_maintenance.h"
#include "daemon/config.h"
#include "daemon/controller/manager.h"
#include "daemon/event/recorder.h"
#include "daemon/informer/informers.h"
#include "daemon/network/network.h"
#include "daemon/node/agent.h"
#include "daemon/registry/local.h"
#include "daemon/registry/registry.h"
#include "daemon/scheduler/scheduler.h"
#include "daemon/startup/startup_gate.h"
#include "runtime/base/guarded.h"
#include "runtime/runtime.h"
#include "store/engine/engine.h"
#include "store/schema/catalog_source.h"

namespace coracle {

// Values that the configuration leaves to the machine.
struct NodeIdentity {
  std::string node_name, node_address;
};

class Daemon {
 public:
  // What build() and start() would refuse about the settings, and about the files that they name, without changing anything.
  // Blocks on the disk. Errors: those, with the file, the line and the setting: "config.yaml: line 3: podCIDR: …".
  static Result<void> check(const Config& config);
  // Creates the directories, opens the store and the network, and finds the running pods. Does not serve yet. Errors: unavailable
  // if another process has the store open; internal, with the file name, if the store is damaged; those of the components.
  static Result<std::unique_ptr<Daemon>> build(const Config& config);
  ~Daemon();  // stop(), and waits for what hangs
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Starts all components. Blocks until all informers have synced: the daemon is ready when it returns. Errors: cancelled by
  // `stop`; an address that cannot be bound.
  Result<void> start(std::stop_token stop);

  // Stops all components; pods keep running. Blocks for some seconds, and longer if a thread that serves a request or
  // synchronizes a pod hangs, because a disk or a server does not answer. False: a task of the node agent hangs. Then this object
  // cannot be destroyed: save(), and end the process.
  bool stop();
  // Writes to the disk what is not there yet. Nothing can be written after that. May be called while stop() runs.
  void save();

  // Stops starting pods and terminates the running ones: see node::Agent. May be called before start(), which then starts only
  // what is necessary for the termination.
  void end_pods();
  // Call after end_pods() and start(). Blocks until the pods have ended or shutdownGracePeriod is over. `tick` is called about
  // once a second.
  void wait_for_end_of_pods(const std::function<void()>& tick);

  // Becomes readable when a restored store is ready: then destroy this object and build another.
  const Fd& restored() const { return restored_; }

  // Returns when the locks of the central components can be acquired; the watchdog depends on it.
  void answer() const;

  // The wall clock was set: components that wait for a wall time check it again.
  void clock_was_set() const {
    controllers_->clock_was_set();
    agent_->clock_was_set();
    server_->clock_was_set();
  }

  // The number of requests and changes since the start; it never decreases.
  uint64_t work_done() const { return asked_.load(std::memory_order_relaxed) + engine_->revision(); }
  // Becomes readable at the first request after listen_for_work().
  const Fd& stirred() const { return stirred_; }
  void listen_for_work() const;
  // Frees memory that was kept for further work. Call when the daemon is idle. Takes some milliseconds.
  void rest() const;

  std::string summary() const;  // "node NAME at https://ADDRESS:PORT"
  // The address of this machine for others; without a network, the pods' gateway.
  const std::string& node_address() const { return identity_.node_address; }
  // A sentence about the limits that this kernel cannot enforce, or "".
  std::string missing_limits() const { return runtime_->enforcement().missing; }

 private:
  Daemon(const Config& config, NodeIdentity identity) : config_(config), identity_(std::move(identity)) {}
  Result<void> keep_node_name();
  Result<void> construct_parts();
  controller::Config controller_config() const;
  void make_deciders();
  void stop_deciders();
  uint16_t port() const { return server_->bound().empty() ? config_.port : server_->bound().front().port; }

  const Config config_;
  NodeIdentity identity_;
  bool ends_ = false;            // end_pods() was called
  std::optional<bool> stopped_;  // the result of stop()
  std::atomic<bool> settled_ = false;
  Fd restored_, stirred_;
  std::atomic<uint64_t> asked_ = 0;              // number of requests
  mutable std::atomic<bool> listening_ = false;  // the next request writes to stirred_
  const schema::CatalogSource catalogs_;         // outlives all users of kinds
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<backup::StoreMaintenance> maintenance_;
  std::unique_ptr<registry::Registry> registry_;
  std::unique_ptr<registry::LocalClient> client_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<runtime::Runtime> runtime_;
  std::unique_ptr<Informers> informers_;
  std::unique_ptr<network::Network> network_;
  std::unique_ptr<startup::StartupGate> gate_;
  std::unique_ptr<node::Agent> agent_;
  Guarded<std::shared_ptr<const WorkQueue>> controllers_queue_;  // for /metrics, while there are controllers
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<controller::Manager> controllers_;
  scheduler::Configuration scheduler_configuration_ = scheduler::default_configuration();
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  Guarded<const scheduler::Scheduler*> explaining_{nullptr};  // for the API's placement requests, while there is a scheduler
};

// Stops the daemon, or ends the process with this status if something hangs in the kernel and uses the components: they cannot be
// destroyed then. systemd starts another process where that is wanted. The exit waits for a thread that the kernel does not let
// go; after TimeoutStopSec= systemd goes on.
void stop_or_exit(Daemon& daemon, int status);

// Terminates every pod of this machine gracefully, as in a shutdown; then removes the network unless the machine shuts down.
// Ends the process if something hangs then, as stop_or_exit(). Errors: conflict while a daemon runs.
Result<void> end_pods(const Config& config, bool machine_ends);

// Kills every pod of this machine and removes the network. Errors: unavailable while a daemon runs.
Result<void> remove_pods(const Config& config);

// Replaces a damaged store by an empty one and keeps the damaged file beside it. Errors: unavailable while a daemon runs.
Result<void> set_aside_damaged(const Config& config);

}  // namespace coracle
