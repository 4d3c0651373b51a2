// SPDX-License-Identifier: Apache-2.0
// WorkQueue: a queue of keys to reconcile. One worker at a time processes a key. A key that is added while it is processed is
// processed once more afterwards; a key that is added twice is processed once. The queue supports delays and exponential back-off
// per key. A worker's Lease marks its key as done when it is destroyed. Source: client-go util/workqueue (semantics).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "store/object/kind.h"

namespace coracle {

struct BackoffPolicy {
  std::chrono::milliseconds first{5};
  std::chrono::milliseconds longest{std::chrono::seconds(60)};
};

// Statistics of the keys of one group, for metrics.
struct QueueCount {
  static constexpr std::array<double, 10> kBounds = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10};  // seconds
  struct Times {
    std::array<uint64_t, kBounds.size() + 1> buckets{};  // not cumulative; the last one is above all bounds
    double seconds = 0;
    void note(std::chrono::duration<double> took);
  };
  size_t depth = 0;  // waiting keys, without delayed ones
  uint64_t adds = 0, retries = 0;
  Times waited, worked;
  double unfinished_seconds = 0, longest_seconds = 0;  // of the keys in process: the sum, and the longest
};

class WorkQueue {
 public:
  using GroupOf = std::function<std::string(const Key& key)>;
  // `group` returns the group of a key for counts(); it must not block.
  explicit WorkQueue(BackoffPolicy policy = {}, const Clock& clock = system_clock(), GroupOf group = {});
  ~WorkQueue();

  class Lease {  // holds one key until it is destroyed
   public:
    Lease(WorkQueue& queue, Key key) : queue_(&queue), key_(std::move(key)) {}
    Lease(Lease&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)), key_(std::move(other.key_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    const Key& key() const { return key_; }

   private:
    WorkQueue* queue_;
    Key key_;
  };

  void add(Key key);                                        // does not block
  void add_after(Key key, std::chrono::nanoseconds delay);  // of several delays, the shortest one applies
  void add_backed_off(Key key);                             // after first, 2*first, 4*first, … up to longest
  void forget(const Key& key);                              // the next back-off starts with `first` again
  // Makes every delayed key due now, and processes every key in process once more. For a change of the wall clock, from which the
  // delays may have been computed.
  void add_all_delayed();
  std::optional<Lease> take(std::stop_token stop);   // blocks; nullopt after stop was requested
  std::optional<Lease> try_take();                   // nullopt if no key is due
  size_t size() const;                               // waiting keys, without delayed ones
  std::map<std::string, QueueCount> counts() const;  // by group; groups without any key are left out

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The result of a successful reconcile: whether and when to reconcile again.
struct Outcome {
  std::optional<std::chrono::nanoseconds> again;
};
using Reconcile = std::function<Result<Outcome>(const Key& key)>;

// Calls reconcile once. A failure is logged here and retried with back-off.
void work_once(WorkQueue& queue, const Key& key, std::string_view component, const Reconcile& reconcile);

// Calls reconcile for each key until stopped.
void run_worker(std::stop_token stop, WorkQueue& queue, std::string_view component, const Reconcile& reconcile);

}  // namespace coracle
