// SPDX-License-Identifier: Apache-2.0
// See queue.h.
#include "daemon/scheduler/queue.h"

#include <algorithm>

namespace coracle::scheduler {

void SchedulingQueue::enter(Entry& entry, State state) {
  entry.state = state;
  if (state == State::active) active_.insert(entry.pod);
  if (state == State::backing_off) backing_off_.emplace(entry.due, entry.pod->key);
  if (state == State::parked) parked_.insert(entry.pod->key);
}

void SchedulingQueue::leave(Entry& entry) {
  if (entry.state == State::active) active_.erase(entry.pod);
  if (entry.state == State::backing_off) backing_off_.erase({entry.due, entry.pod->key});
  if (entry.state == State::parked) parked_.erase(entry.pod->key);
}

void SchedulingQueue::add(PodInfoPtr pod) {
  auto [found, fresh] = pods_.try_emplace(pod->key);
  Entry& entry = found->second;
  if (!fresh && entry.state == State::popped) {
    entry.pod = std::move(pod);
    entry.renewed = true;
    return;
  }
  if (!fresh) leave(entry);
  entry.pod = std::move(pod);
  enter(entry, State::active);
}

void SchedulingQueue::remove(const Key& key) {
  auto found = pods_.find(key);
  if (found == pods_.end()) return;
  leave(found->second);
  pods_.erase(found);
}

PodInfoPtr SchedulingQueue::pop(SteadyTime now) {
  while (!backing_off_.empty() && backing_off_.begin()->first <= now) {
    Entry& entry = pods_.find(backing_off_.begin()->second)->second;
    leave(entry);
    enter(entry, State::active);
  }
  if (active_.empty()) return nullptr;
  Entry& entry = pods_.find((*active_.begin())->key)->second;
  leave(entry);
  enter(entry, State::popped);
  entry.renewed = false;
  ++entry.attempts;
  return entry.pod;
}

std::optional<SteadyTime> SchedulingQueue::next_due() const {
  if (backing_off_.empty()) return std::nullopt;
  return backing_off_.begin()->first;
}

void SchedulingQueue::back_off(Entry& entry, SteadyTime now) {
  auto delay = backoff_first_;
  for (int i = 1; i < entry.attempts && delay < backoff_longest_; i++) delay *= 2;
  entry.due = now + std::min(delay, backoff_longest_);
}

void SchedulingQueue::park(const Key& key, PluginSet refused, SteadyTime now) {
  auto found = pods_.find(key);
  if (found == pods_.end() || found->second.state != State::popped) return;
  Entry& entry = found->second;
  entry.refused = refused;
  back_off(entry, now);
  enter(entry, entry.renewed ? State::backing_off : State::parked);
}

void SchedulingQueue::fail(const Key& key, SteadyTime now) {
  auto found = pods_.find(key);
  if (found == pods_.end() || found->second.state != State::popped) return;
  back_off(found->second, now);
  enter(found->second, State::backing_off);
}

void SchedulingQueue::wake(SteadyTime now, const CouldHelp& could_help) {
  for (auto next = parked_.begin(); next != parked_.end();) {
    Entry& entry = pods_.find(*next++)->second;
    if (!could_help(*entry.pod, entry.refused)) continue;
    leave(entry);
    enter(entry, entry.due <= now ? State::active : State::backing_off);
  }
}

SchedulingQueue::Standing SchedulingQueue::standing(const Key& key) const {
  auto found = pods_.find(key);
  if (found == pods_.end()) return {};
  static constexpr std::string_view kNames[] = {"active", "deciding", "backing off", "waiting"};
  return {kNames[size_t(found->second.state)], found->second.attempts};
}

}  // namespace coracle::scheduler
