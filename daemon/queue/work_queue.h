// SPDX-License-Identifier: Apache-2.0
// WorkQueue: names of things to look at again. A key is worked on by one worker at a time; a key added while it is
// worked on comes once more afterwards; a key added twice comes once. Delays and per-key exponential back-off included.
// The lease tells the queue that its worker is done, on every path out. Source: client-go util/workqueue (semantics).
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

// What became of the keys of one group, for metrics.
struct QueueCount {
  static constexpr std::array<double, 10> kBounds = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10};  // seconds
  struct Times {
    std::array<uint64_t, kBounds.size() + 1> buckets{};  // not cumulative; the last is beyond every bound
    double seconds = 0;
    void note(std::chrono::duration<double> took);
  };
  size_t depth = 0;  // keys waiting, delayed ones not counted
  uint64_t adds = 0, retries = 0;
  Times waited, worked;
  double unfinished_seconds = 0, longest_seconds = 0;  // of those worked on now: in all, and of the longest
};

class WorkQueue {
 public:
  using GroupOf = std::function<std::string(const Key& key)>;
  // With `group`, what happens is counted by what it says of a key; it must not block.
  explicit WorkQueue(BackoffPolicy policy = {}, const Clock& clock = system_clock(), GroupOf group = {});
  ~WorkQueue();

  class Lease {  // holds one key until destroyed
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
  void add_after(Key key, std::chrono::nanoseconds delay);  // the earliest of several delays counts
  void add_backed_off(Key key);                             // after first, 2*first, 4*first, … up to longest
  void forget(const Key& key);                              // the next back-off starts from first again
  // Every delayed key is due now, and every key that is worked on comes once more: the wall clock was set, from which their
  // delays may have been computed.
  void add_all_delayed();
  std::optional<Lease> take(std::stop_token stop);   // blocks; nothing once stop is requested
  std::optional<Lease> try_take();                   // nothing when no key is due now
  size_t size() const;                               // keys waiting, delayed ones not counted
  std::map<std::string, QueueCount> counts() const;  // by group; those in which nothing ever happened are not there

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What a reconcile says when it did not fail: whether, and when, to look again.
struct Outcome {
  std::optional<std::chrono::nanoseconds> again;
};
using Reconcile = std::function<Result<Outcome>(const Key& key)>;

// One turn: calls reconcile; what failed comes again with back-off, and is logged here, once.
void work_once(WorkQueue& queue, const Key& key, std::string_view room, const Reconcile& reconcile);

// Calls reconcile once per key until stopped.
void run_worker(std::stop_token stop, WorkQueue& queue, std::string_view room, const Reconcile& reconcile);

}  // namespace coracle
