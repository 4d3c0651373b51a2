// SPDX-License-Identifier: Apache-2.0
// Which pod is next: as the QueueSort plugin says. Not thread-safe, no time of its own.
//   added ──▶ active ──pop──▶ being decided ──▶ bound: gone
//                ▲                         ├──▶ parked: no node fits; comes back when something happens that could help
//                └──────── backing off ◀───┘    failed: comes back by itself
// Source: Kubernetes scheduling queue, queueing hints (KEP-4247).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "daemon/scheduler/framework.h"
#include "runtime/base/clock.h"

namespace coracle::scheduler {

class SchedulingQueue {
 public:
  using Before = std::function<bool(const PodInfo&, const PodInfo&)>;  // which of two pods is decided first
  SchedulingQueue(Before before, std::chrono::nanoseconds backoff_first, std::chrono::nanoseconds backoff_longest)
      : backoff_first_(backoff_first), backoff_longest_(backoff_longest), active_(Order{std::move(before)}) {}

  // New, or its spec has changed: decided again at once.
  void add(PodInfoPtr pod);
  void remove(const Key& key);                 // bound, deleted
  PodInfoPtr pop(SteadyTime now);              // null: none is due
  std::optional<SteadyTime> next_due() const;  // when a pod that backs off comes back
  bool has_active() const { return !active_.empty(); }

  void park(const Key& key, PluginSet refused, SteadyTime now);  // after pop: no node fits, says who
  void fail(const Key& key, SteadyTime now);                     // after pop: something went wrong
  // Parked pods for which `could_help` holds come back, as soon as their back-off allows. Costs nothing when none is parked.
  using CouldHelp = std::function<bool(const PodInfo&, const PluginSet& refused)>;
  void wake(SteadyTime now, const CouldHelp& could_help);
  bool has_parked() const { return !parked_.empty(); }
  size_t size() const { return pods_.size(); }

  struct Standing {
    std::string_view state;  // "active", "deciding", "backing off", "waiting"; "" when it is not here
    int attempts = 0;
  };
  Standing standing(const Key& key) const;

 private:
  enum class State { active, popped, backing_off, parked };
  struct Entry {
    PodInfoPtr pod;
    State state = State::active;
    int attempts = 0;
    SteadyTime due{};      // end of the back-off
    bool renewed = false;  // while popped: what it was decided upon is of the past
    PluginSet refused;
  };
  struct Order {
    Before before;
    bool operator()(const PodInfoPtr& a, const PodInfoPtr& b) const {
      if (before(*a, *b)) return true;
      return !before(*b, *a) && a->key < b->key;
    }
  };
  void enter(Entry& entry, State state);
  void leave(Entry& entry);
  void back_off(Entry& entry, SteadyTime now);

  std::chrono::nanoseconds backoff_first_, backoff_longest_;
  std::map<Key, Entry> pods_;
  std::set<PodInfoPtr, Order> active_;
  std::set<std::pair<SteadyTime, Key>> backing_off_;
  std::set<Key> parked_;
};

}  // namespace coracle::scheduler
