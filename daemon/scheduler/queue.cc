// SPDX-License-Identifier: Apache-2.0
// The order in which pods are decided. See queue.h.
#include "daemon/scheduler/queue.h"

#include <algorithm>

namespace coracle::scheduler {

SchedulingQueue::Rank SchedulingQueue::rank(const Key& key, const Entry& entry) {
  return {-entry.waiting.priority, entry.waiting.created, key};
}

void SchedulingQueue::enter(const Key& key, Entry& entry, State state) {
  entry.state = state;
  if (state == State::active) active_.insert(rank(key, entry));
  if (state == State::backing_off) backing_off_.emplace(entry.due, key);
}

void SchedulingQueue::leave(const Key& key, Entry& entry) {
  if (entry.state == State::active) active_.erase(rank(key, entry));
  if (entry.state == State::backing_off) backing_off_.erase({entry.due, key});
}

void SchedulingQueue::add(const Key& key, Waiting waiting) {
  auto [found, fresh] = pods_.try_emplace(key);
  Entry& entry = found->second;
  if (!fresh && entry.state == State::popped) {
    entry.waiting = std::move(waiting);
    entry.woken = true;
    return;
  }
  if (!fresh) leave(key, entry);
  entry.waiting = std::move(waiting);
  enter(key, entry, State::active);
}

void SchedulingQueue::remove(const Key& key) {
  auto found = pods_.find(key);
  if (found == pods_.end()) return;
  leave(key, found->second);
  pods_.erase(found);
}

std::optional<Key> SchedulingQueue::pop(SteadyTime now) {
  while (!backing_off_.empty() && backing_off_.begin()->first <= now) {
    Key key = backing_off_.begin()->second;
    Entry& entry = pods_.find(key)->second;
    leave(key, entry);
    enter(key, entry, State::active);
  }
  if (active_.empty()) return std::nullopt;
  Key key = std::get<Key>(*active_.begin());
  Entry& entry = pods_.find(key)->second;
  leave(key, entry);
  enter(key, entry, State::popped);
  entry.woken = false;
  ++entry.attempts;
  return key;
}

std::optional<SteadyTime> SchedulingQueue::next_due() const {
  if (backing_off_.empty()) return std::nullopt;
  return backing_off_.begin()->first;
}

void SchedulingQueue::park(const Key& key, SteadyTime now) {
  auto found = pods_.find(key);
  if (found == pods_.end() || found->second.state != State::popped) return;
  if (found->second.woken) return fail(key, now);
  Entry& entry = found->second;
  auto delay =
      std::min<std::chrono::nanoseconds>(kBackoffFirst * (1 << std::min(entry.attempts - 1, 6)), kBackoffLongest);
  entry.due = now + delay;
  enter(key, entry, State::parked);
}

void SchedulingQueue::fail(const Key& key, SteadyTime now) {
  auto found = pods_.find(key);
  if (found == pods_.end() || found->second.state != State::popped) return;
  Entry& entry = found->second;
  auto delay =
      std::min<std::chrono::nanoseconds>(kBackoffFirst * (1 << std::min(entry.attempts - 1, 6)), kBackoffLongest);
  entry.due = now + delay;
  enter(key, entry, State::backing_off);
}

void SchedulingQueue::wake(SteadyTime now, bool only_heeding) {
  for (auto& [key, entry] : pods_) {
    if (only_heeding && !entry.waiting.heeds_pods) continue;
    if (entry.state == State::popped) entry.woken = true;
    if (entry.state == State::parked) enter(key, entry, entry.due <= now ? State::active : State::backing_off);
  }
}

}  // namespace coracle::scheduler
