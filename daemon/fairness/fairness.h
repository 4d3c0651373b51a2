// SPDX-License-Identifier: Apache-2.0
// Fairness: who may have the server now, who waits, and who is told to come back: API priority and fairness, with threads.
//   (user, attributes) ──classify──▶ flow schema ▸ priority level ──enter──▶ seats | a place in a queue | 429
// The parts are pure and files of their own: rules (which schema), shares (how many seats a level has), queue_set (whose turn it
// is), seats (how wide a request is), retry_after. Here are the lock, the sleepers and the counters.
// Every ten seconds in which anybody asks, seats that levels may lend go to those who asked for more.
// Thread-safe. Source: Kubernetes "API Priority and Fairness"; apiserver util/flowcontrol.
#pragma once

#include <array>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/fairness/retry_after.h"
#include "daemon/fairness/rules.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace coracle::fairness {

struct FairnessLimits {
  int seats = 64;                              // of the whole server, exempt requests aside
  int waiting = 96;                            // requests that wait, in all: each one holds a thread
  std::chrono::milliseconds patience{15'000};  // of one that waits
};

class Fairness {
 public:
  Fairness(const FlowRules& rules, FairnessLimits limits, const Clock& clock = system_clock());
  ~Fairness();

  // Takes other rules. What runs and waits goes on in the level it came in by, also when that is gone. Schemas whose level is
  // missing count for nothing.
  void set_rules(const FlowRules& rules);
  Classified classify(const User& user, const access::Attributes& attributes) const;
  // The most that one request takes of the level; 0: the level does not say.
  int seats_max(const Classified& who) const;

  struct Level;
  struct Waiter;
  class Seat {  // held while the request runs
   public:
    Seat() = default;
    Seat(Fairness& house, std::unique_ptr<Waiter> request);
    Seat(Seat&& other) noexcept;
    Seat& operator=(Seat&&) = delete;
    ~Seat();

   private:
    Fairness* house_ = nullptr;
    std::unique_ptr<Waiter> request_;
  };
  // Blocks while others are before it. `seats`: 1 to kSeatsMax. Errors: too_many_requests, with the seconds after which to try
  // again.
  Result<Seat> enter(const Classified& who, int seats = 1);

  // ---- for metrics ----
  static constexpr std::array<double, 13> kWaitBounds = {0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30};  // seconds
  struct Waits {
    std::array<uint64_t, kWaitBounds.size() + 1> buckets{};  // not cumulative; the last is beyond every bound
    double seconds = 0;
  };
  struct FlowCount {
    int executing = 0, executing_seats = 0, waiting = 0, waiting_seats = 0;
    uint64_t dispatched = 0;
    std::map<std::string, uint64_t> rejected;  // by reason
    Waits waited, refused;                     // how long those that ran, and those that did not, were in a queue
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
  void seat_those_who_wait(Level& level, SteadyTime now);
  Error turn_away(Level& level, FlowCount& flow, const char* reason, SteadyTime now);
  void leave(Waiter& request);

  const FairnessLimits limits_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::shared_ptr<const std::vector<SchemaRule>> schemas_;
  std::vector<std::shared_ptr<Level>> levels_;
  SteadyTime adjusted_{};
  double fair_fraction_ = 0;
  int waiting_ = 0;
};

}  // namespace coracle::fairness
