// SPDX-License-Identifier: Apache-2.0
// Fairness: who may have the server now, who waits, and who is told to come back: API priority and fairness.
//   (user, attributes) ──classify──▶ flow schema ▸ priority level ──enter──▶ a seat | a place in the flow's queue | 429
// A priority level has a share of the seats; of what it may lend, others take what it leaves idle. Within a level, flows (one
// per user or namespace) are served in turn, so that none waits for another's crowd. Exempt levels (administrators, probes)
// are never counted. The rules are FlowSchemas and PriorityLevelConfigurations; `standard_rules` are Kubernetes' own.
// Thread-safe. Source: Kubernetes "API Priority and Fairness"; apiserver util/flowcontrol, apis/flowcontrol/bootstrap.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/api/user.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::api {

// FlowSchemas and PriorityLevelConfigurations, as objects of flowcontrol.apiserver.k8s.io/v1.
struct FlowRules {
  std::vector<json::value> schemas, levels;
};
FlowRules standard_rules();

struct FairnessLimits {
  int seats = 64;                          // requests that run at once, exempt ones aside
  int waiting = 96;                        // requests that wait, in all
  std::chrono::milliseconds patience{15'000};  // of one that waits
};

struct Classified {
  std::string schema, level;          // names
  std::string schema_uid, level_uid;  // for the answer's headers
  std::string flow;                   // what tells flows of one schema apart
  bool exempt = false;
};

class Fairness {
 public:
  Fairness(const FlowRules& rules, FairnessLimits limits);

  // Takes other rules; what runs and waits goes on under those it came in by.
  void set_rules(const FlowRules& rules);
  Classified classify(const User& user, const access::Attributes& attributes) const;

  class Seat {  // held while the request runs
   public:
    Seat() = default;
    Seat(Fairness& house, std::string level) : house_(&house), level_(std::move(level)) {}
    Seat(Seat&& other) noexcept : house_(std::exchange(other.house_, nullptr)), level_(std::move(other.level_)) {}
    Seat& operator=(Seat&&) = delete;
    ~Seat();

   private:
    Fairness* house_ = nullptr;
    std::string level_;
  };
  // Blocks while others are before it. Errors: too_many_requests, with the seconds after which to try again.
  Result<Seat> enter(const Classified& who);

  struct Count {
    std::string level;
    int seats = 0, executing = 0, waiting = 0;
    uint64_t dispatched = 0, rejected = 0;
  };
  std::vector<Count> counts() const;

 private:
  struct Waiter {
    std::condition_variable turn;
    bool seated = false;
  };
  struct Level {
    std::string name, uid;
    bool exempt = false, queues = true;
    int shares = 0, lendable_percent = 0, queue_length = 50;
    int seats = 0, executing = 0, waiting = 0;
    uint64_t dispatched = 0, rejected = 0;
    std::list<std::pair<std::string, std::deque<Waiter*>>> flows;  // in the order of their turns
  };
  struct Rule;
  struct Schema;
  using Schemas = std::vector<Schema>;

  Level* level_named(const std::string& name);
  bool has_room(const Level& level) const;
  void seat_those_who_wait();
  void leave(const std::string& level);

  const FairnessLimits limits_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Schemas> schemas_;
  std::vector<Level> levels_;
  int executing_ = 0, waiting_ = 0;
};

}  // namespace coracle::api
