// SPDX-License-Identifier: Apache-2.0
// SchedulingQueue: the order in which pods are scheduled, by the QueueSort plugin. Not thread-safe; it does not read the clock.
//   added ──▶ active ──pop──▶ being scheduled ──▶ bound: removed
//                ▲                         ├──▶ parked: no node fits; returns after an event that could help
//                └──────── backing off ◀───┘    failed: returns after its back-off
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
  using Before = std::function<bool(const PodInfo&, const PodInfo&)>;  // which of two pods is scheduled first
  SchedulingQueue(Before before, std::chrono::nanoseconds backoff_first, std::chrono::nanoseconds backoff_longest)
      : backoff_first_(backoff_first), backoff_longest_(backoff_longest), active_(Order{std::move(before)}) {}

  // Adds a pod, or replaces one whose spec has changed: it becomes active at once.
  void add(PodInfoPtr pod);
  void remove(const Key& key);                 // bound or deleted
  PodInfoPtr pop(SteadyTime now);              // null: none is due
  std::optional<SteadyTime> next_due() const;  // the end of the next back-off
  bool has_active() const { return !active_.empty(); }

  void park(const Key& key, PluginSet refused, SteadyTime now);  // after pop: no node fits; `refused` rejected it
  void fail(const Key& key, SteadyTime now);                     // after pop: an error occurred
  // Returns parked pods for which `could_help` is true to the queue, after their back-off. Costs nothing if none is parked.
  using CouldHelp = std::function<bool(const PodInfo&, const PluginSet& refused)>;
  void wake(SteadyTime now, const CouldHelp& could_help);
  bool has_parked() const { return !parked_.empty(); }
  size_t size() const { return pods_.size(); }

  struct Standing {
    std::string_view state;  // "active", "deciding", "backing off", "waiting"; "" if it is not in the queue
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
    bool renewed = false;  // while popped: the pod was added again, so the running decision is outdated
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
