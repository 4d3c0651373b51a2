// SPDX-License-Identifier: Apache-2.0
// Which pod is next: by priority, then by age. Not thread-safe, no time of its own.
//   added ──▶ active ──pop──▶ being decided ──▶ bound: gone
//                ▲                         ├──▶ parked: no node fits; comes back when something relevant changes
//                └──────── backing off ◀───┘    failed: comes back by itself
// Source: Kubernetes scheduling queue.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "runtime/base/clock.h"
#include "store/object/kind.h"

namespace coracle::scheduler {

constexpr std::chrono::seconds kBackoffFirst{1};
constexpr std::chrono::seconds kBackoffLongest{10};

class SchedulingQueue {
 public:
  struct Waiting {
    int64_t priority = 0;
    std::string created;      // RFC 3339: older first
    bool heeds_pods = false;  // its place depends on other pods' places (affinity, spreading)
  };
  // New, or its spec has changed: decided again at once.
  void add(const Key& key, Waiting waiting);
  void remove(const Key& key);  // bound, deleted
  std::optional<Key> pop(SteadyTime now);
  std::optional<SteadyTime> next_due() const;  // when a pod that backs off comes back
  bool has_active() const { return !active_.empty(); }

  void park(const Key& key, SteadyTime now);  // after pop: no node fits
  void fail(const Key& key, SteadyTime now);  // after pop: something went wrong
  // Something relevant changed: parked pods come back, as soon as their back-off allows. `only_heeding`: those whose
  // place depends on other pods.
  void wake(SteadyTime now, bool only_heeding = false);
  size_t size() const { return pods_.size(); }

 private:
  enum class State { active, popped, backing_off, parked };
  struct Entry {
    Waiting waiting;
    State state = State::active;
    int attempts = 0;
    SteadyTime due{};    // end of the back-off
    bool woken = false;  // while popped: what it was decided upon is of the past
  };
  using Rank = std::tuple<int64_t, std::string, Key>;  // minus priority, age, name
  static Rank rank(const Key& key, const Entry& entry);
  void enter(const Key& key, Entry& entry, State state);
  void leave(const Key& key, Entry& entry);

  std::map<Key, Entry> pods_;
  std::set<Rank> active_;
  std::set<std::pair<SteadyTime, Key>> backing_off_;
};

}  // namespace coracle::scheduler
