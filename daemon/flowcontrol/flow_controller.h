// SPDX-License-Identifier: Apache-2.0
// FlowController: API priority and fairness: decides which requests run now, wait, or are rejected. This file contains the
// threads' part.
//   (user, attributes) ──classify──▶ flow schema ▸ priority level ──enter──▶ seats | a place in a queue | 429
// The pure parts have files of their own: rules (the schema of a request), shares (the seats of a level), queue_set (the order of
// requests), seats (the seats of a request), retry_after. This file adds the lock, the waiting and the counters. Every ten
// seconds, if there are requests, lendable seats are reassigned to levels with more demand. Thread-safe. Source: Kubernetes "API
// Priority and Fairness"; apiserver util/flowcontrol.
#pragma once

#include <array>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/flowcontrol/retry_after.h"
#include "daemon/flowcontrol/rules.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace coracle::flowcontrol {

struct FlowControllerLimits {
  int seats = 64;                             // of the whole server, without exempt requests
  int waiting = 96;                           // waiting requests in total: each one uses a thread
  std::chrono::milliseconds timeout{15'000};  // time limit of waiting
};

class FlowController {
 public:
  FlowController(const FlowRules& rules, FlowControllerLimits limits, const Clock& clock = system_clock());
  ~FlowController();

  // Replaces the rules. Running and waiting requests stay in their level, even if it is deleted. Schemas with a missing level are
  // ignored.
  void set_rules(const FlowRules& rules);
  Classified classify(const User& user, const auth::Attributes& attributes) const;
  // The limit of seats per request in the level; 0: no limit.
  int seats_max(const Classified& who) const;

  struct Level;
  struct Waiter;
  class Seat {  // held while the request runs
   public:
    Seat() = default;
    Seat(FlowController& controller, std::unique_ptr<Waiter> request);
    Seat(Seat&& other) noexcept;
    Seat& operator=(Seat&&) = delete;
    ~Seat();

   private:
    FlowController* controller_ = nullptr;
    std::unique_ptr<Waiter> request_;
  };
  // Blocks while earlier requests have priority. `seats`: 1 to kSeatsMax. Errors: too_many_requests, with the seconds for
  // Retry-After.
  Result<Seat> enter(const Classified& who, int seats = 1);

  // ---- for metrics ----
  static constexpr std::array<double, 13> kWaitBounds = {0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30};  // seconds
  struct Waits {
    std::array<uint64_t, kWaitBounds.size() + 1> buckets{};  // not cumulative; the last one is above all bounds
    double seconds = 0;
  };
  struct FlowCount {
    int executing = 0, executing_seats = 0, waiting = 0, waiting_seats = 0;
    uint64_t dispatched = 0;
    std::map<std::string, uint64_t> rejected;  // by reason
    Waits waited, refused;                     // queueing times of executed and of rejected requests
  };
  struct Count {
    std::string level;
    SeatLimits limits;
    int current_limit = 0;
    int demand_high_watermark = 0;
    double demand_average = 0, demand_deviation = 0, demand_smoothed = 0, target = 0;
    std::map<std::string, FlowCount> schemas;
    int executing = 0, waiting = 0;  // of all schemas
  };
  std::vector<Count> counts() const;
  double fair_fraction() const;

 private:
  Level* level_named(const std::string& name);
  void adjust(SteadyTime now);
  void adjust_when_due(SteadyTime now);
  void dispatch_waiting(Level& level, SteadyTime now);
  Error reject(Level& level, FlowCount& flow, const char* reason, SteadyTime now);
  void leave(Waiter& request);

  const FlowControllerLimits limits_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  SchemaRules schemas_;
  std::vector<std::shared_ptr<Level>> levels_;
  SteadyTime adjusted_{};
  double fair_fraction_ = 0;
  int waiting_ = 0;
};

}  // namespace coracle::flowcontrol
