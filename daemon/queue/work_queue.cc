// SPDX-License-Identifier: Apache-2.0
// See work_queue.h. The queue has no thread: a taker also waits for the next delayed key, so an idle queue costs nothing.
//   add       ──▶ waiting (in order, each key once) ──take──▶ working ──lease ends──▶ removed, or waiting again if it was added
//   add_after ──▶ delayed (by due time) ──due──▶ waiting
#include "daemon/queue/work_queue.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <set>

#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/base/stack.h"
#include "store/object/object.h"

namespace coracle {
namespace {

using std::chrono::nanoseconds;

// After kTakenMax keys, a thread frees its unused stack when no key has come for kStackKept.
constexpr int kTakenMax = 16;
constexpr std::chrono::seconds kStackKept{5};

struct Work {
  SteadyTime began;
  std::optional<SteadyTime> again;  // since when it must be processed once more
};

// In slabs: some keys wait when all work is over, and each would keep a page of the heap from being freed.
template <typename Value>
using ByKey = std::map<Key, Value, std::less<Key>, sys::SlabAllocator<std::pair<const Key, Value>>>;
using Due = std::pair<SteadyTime, Key>;

struct Data {
  WorkQueue::GroupOf group;  // absent: no counts
  std::deque<Key, sys::SlabAllocator<Key>> waiting;
  ByKey<SteadyTime> queued;  // those in `waiting`, and since when
  ByKey<Work> working;
  ByKey<SteadyTime> delayed;
  std::set<Due, std::less<Due>, sys::SlabAllocator<Due>> due;  // `delayed`, by time
  ByKey<unsigned> failures;
  std::map<std::string, QueueCount> counts;

  template <typename F>
  void count(const Key& key, F&& change) {
    if (group) change(counts[group(key)]);
  }
  void add(Key key, SteadyTime now) {
    undelay(key);
    auto busy = working.find(key);
    if (busy != working.end() ? busy->second.again.has_value() : queued.contains(key)) return;
    count(key, [](QueueCount& all) { all.adds++; });
    if (busy != working.end()) busy->second.again = now;
    else enqueue(std::move(key), now);
  }
  void enqueue(Key key, SteadyTime since) {
    queued.emplace(key, since);
    waiting.push_back(std::move(key));
  }
  void done(const Key& key, SteadyTime now) {
    auto found = working.find(key);
    Work work = found->second;
    working.erase(found);
    count(key, [&](QueueCount& all) { all.worked.note(now - work.began); });
    if (work.again) enqueue(key, *work.again);
  }
  void undelay(const Key& key) {
    auto found = delayed.find(key);
    if (found == delayed.end()) return;
    due.erase({found->second, key});
    delayed.erase(found);
  }
  void add_at(Key key, SteadyTime when) {
    auto [found, fresh] = delayed.try_emplace(key, when);
    if (!fresh && found->second <= when) return;
    if (!fresh) due.erase({found->second, key});
    found->second = when;
    due.emplace(when, std::move(key));
  }
  void promote(SteadyTime now) {
    while (!due.empty() && due.begin()->first <= now) {
      Key key = due.begin()->second;
      add(std::move(key), now);  // removes it from `due`
    }
  }
  void promote_all(SteadyTime now) {
    while (!due.empty()) {
      Key key = due.begin()->second;
      add(std::move(key), now);  // removes it from `due`
    }
    for (auto& [key, work] : working)
      if (!work.again) work.again = now;
  }
  std::optional<Key> pop(SteadyTime now) {
    promote(now);
    if (waiting.empty()) return std::nullopt;
    Key key = std::move(waiting.front());
    waiting.pop_front();
    auto since = queued.extract(key);
    count(key, [&](QueueCount& all) { all.waited.note(now - since.mapped()); });
    working.emplace(key, Work{now, {}});
    return key;
  }
};

}  // namespace

struct WorkQueue::State {
  BackoffPolicy policy;
  const Clock& clock;
  Guarded<Data> data;
};

void QueueCount::Times::note(std::chrono::duration<double> took) {
  buckets[size_t(std::lower_bound(kBounds.begin(), kBounds.end(), took.count()) - kBounds.begin())]++;
  seconds += took.count();
}

WorkQueue::WorkQueue(BackoffPolicy policy, const Clock& clock, GroupOf group)
    : state_(new State{policy, clock, Guarded<Data>()}) {
  state_->data.with([&](Data& data) { data.group = std::move(group); });
}
WorkQueue::~WorkQueue() = default;

WorkQueue::Lease::~Lease() {
  if (!queue_) return;
  State& state = *queue_->state_;
  state.data.with([&](Data& data) { data.done(key_, state.clock.steady()); });
  state.data.notify();
}

void WorkQueue::add(Key key) {
  state_->data.with([&](Data& data) { data.add(std::move(key), state_->clock.steady()); });
  state_->data.notify();
}

void WorkQueue::add_after(Key key, nanoseconds delay) {
  if (delay <= nanoseconds::zero()) return add(std::move(key));
  SteadyTime when = state_->clock.steady() + delay;
  state_->data.with([&](Data& data) { data.add_at(std::move(key), when); });
  state_->data.notify();
}

void WorkQueue::add_backed_off(Key key) {
  unsigned failures = state_->data.with([&](Data& data) {
    data.count(key, [](QueueCount& all) { all.retries++; });
    return data.failures[key]++;
  });
  auto delay = state_->policy.first;
  for (unsigned i = 0; i < failures && delay < state_->policy.longest; ++i) delay *= 2;
  add_after(std::move(key), std::min(delay, state_->policy.longest));
}

void WorkQueue::forget(const Key& key) {
  state_->data.with([&](Data& data) { data.failures.erase(key); });
}

void WorkQueue::add_all_delayed() {
  state_->data.with([&](Data& data) { data.promote_all(state_->clock.steady()); });
  state_->data.notify();
}

std::optional<WorkQueue::Lease> WorkQueue::try_take() {
  auto key = state_->data.with([&](Data& data) { return data.pop(state_->clock.steady()); });
  if (!key) return std::nullopt;
  return Lease(*this, std::move(*key));
}

std::optional<WorkQueue::Lease> WorkQueue::take(std::stop_token stop) {
  thread_local int taken = 0;  // since this thread gave its stack back
  while (!stop.stop_requested()) {
    if (auto lease = try_take()) {
      taken = std::min(taken + 1, kTakenMax);
      return lease;
    }
    auto next =
        state_->data.with([](Data& data) { return data.due.empty() ? std::optional<SteadyTime>() : data.due.begin()->first; });
    bool has_changed = false;
    auto changed = [&](const Data& data) {
      return has_changed = !data.waiting.empty() || (!data.due.empty() && (!next || data.due.begin()->first < *next));
    };
    auto nothing = [](Data&) {};
    std::optional<std::chrono::steady_clock::time_point> until;
    const auto now = std::chrono::steady_clock::now();
    if (next) until = now + (*next - state_->clock.steady());
    const bool gives = taken == kTakenMax && (!until || *until > now + kStackKept);
    if (gives) until = now + kStackKept;
    if (until) state_->data.wait_until(stop, *until, changed, nothing);
    else state_->data.wait(stop, changed, nothing);
    if (!gives || has_changed) continue;
    give_stack_back();
    taken = 0;
  }
  return std::nullopt;
}

size_t WorkQueue::size() const {
  return state_->data.with([](const Data& data) { return data.waiting.size(); });
}

std::map<std::string, QueueCount> WorkQueue::counts() const {
  SteadyTime now = state_->clock.steady();
  return state_->data.with([&](const Data& data) {
    std::map<std::string, QueueCount> counts = data.counts;
    if (!data.group) return counts;
    for (const auto& [key, since] : data.queued) counts[data.group(key)].depth++;
    for (const auto& [key, work] : data.working) {
      QueueCount& all = counts[data.group(key)];
      double seconds = std::chrono::duration<double>(now - work.began).count();
      all.unfinished_seconds += seconds;
      all.longest_seconds = std::max(all.longest_seconds, seconds);
    }
    return counts;
  });
}

void work_once(WorkQueue& queue, const Key& key, std::string_view component, const Reconcile& reconcile) {
  auto outcome = reconcile(key);
  if (outcome) {
    queue.forget(key);
    if (outcome->again) queue.add_after(key, *outcome->again);
    return;
  }
  bool expected = outcome.error().code() == Code::conflict;  // a concurrent write: the retry reads the new state
  log(expected ? LogLevel::debug : LogLevel::warning, component, outcome.error().text(), {{"key", key.text()}});
  queue.add_backed_off(key);
}

void run_worker(std::stop_token stop, WorkQueue& queue, std::string_view component, const Reconcile& reconcile) {
  while (auto lease = queue.take(stop)) work_once(queue, lease->key(), component, reconcile);
}

}  // namespace coracle
