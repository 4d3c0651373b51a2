// SPDX-License-Identifier: Apache-2.0
// Broadcaster: delivers each published event to every watch of that kind and namespace, in order, and never waits for a watch.
//
//   publish(events) ─▶ inbox (bounded) ─▶ Watcher::take, on the thread that owns the watch
//                      inbox (bounded) ─▶ "store-watchers" thread ─▶ the delegate of a sleeping owner
//                      inbox (bounded) ─▶ "broadcaster" thread ─▶ callbacks
// A watch that is too far behind is ended with gone: it can miss the latest events, but never one in the middle. The limit is a
// number of events. Also, if all inboxes together keep too much superseded text alive, the inbox that keeps most is ended.
//
// A watch starts in two steps, because its initial events are read elsewhere: join() queues what is published from now on.
// begin() puts the initial events in front and drops queued and later events that they already contain.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/sys/slab_pool.h"
#include "store/engine/engine.h"

namespace coracle::engine {

// The size of objects that only undelivered events keep alive; counted once for all inboxes that share the event.
class Superseded {
 public:
  Superseded(std::shared_ptr<std::atomic<size_t>> total, size_t bytes) : total_(std::move(total)), bytes_(bytes) {
    *total_ += bytes_;
  }
  Superseded(const Superseded&) = delete;
  ~Superseded() { *total_ -= bytes_; }
  size_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<std::atomic<size_t>> total_;
  const size_t bytes_;
};
using SupersededPtr = std::shared_ptr<const Superseded>;

// A published event with its objects, which may have their parsed form, or at rest, for watchers that are behind.
using Told = std::variant<Event, RestingEvent>;

class Inbox {
 public:
  Inbox(const Kind& kind, std::string ns, size_t behind_max) : kind_(kind), ns_(std::move(ns)), behind_max_(behind_max) {}

  const Kind& kind() const { return kind_; }

  // For the broadcaster. Who must be notified of the new event; the owner has already been.
  enum class Tell { nobody, owner, delegate };
  bool concerns(const Event& event) const;
  Tell push(Told told, SupersededPtr superseded, size_t awake_bytes);  // for an event that concerns it
  size_t awake_bytes() const { return awake_bytes_; }                  // size of the queued events that are not at rest
  size_t superseded_bytes() const;                                     // that it keeps alive, alone or with others
  // Ends it and drops its queued events.
  void overflow(Error why);
  std::atomic<bool> subscribed = false;  // the broadcaster thread empties it; set before begin()
  bool begin(std::vector<RestingEvent> events, Revision upto);
  bool end(Error why);
  void close();     // the owner has left: later events are dropped
  void delegate();  // passes queued events to the owner's delegate, if it still sleeps

  // For the reader. Nothing: no event is queued. An error is the end and is returned once.
  std::optional<Result<Event>> take();
  std::optional<Result<Event>> wait(std::stop_token stop, std::chrono::steady_clock::time_point deadline,
                                    const Delegate* delegate);
  Revision delegated_upto() const;  // the last event that a delegate has received

 private:
  struct Waiting {
    Told told;
    SupersededPtr superseded;
    size_t awake_bytes = 0;  // of an event that is not at rest
    Revision revision() const {
      return std::visit([](const auto& event) { return event.revision; }, told);
    }
  };
  // In slabs: each inbox has one for ever, and its newest block would keep a page of the heap from being freed.
  using Waitings = std::deque<Waiting, sys::SlabAllocator<Waiting>>;
  struct Contents {
    bool begun = false, ended = false, closed = false;
    Waitings events;
    size_t superseded_bytes = 0;
    Revision upto = 0;  // the revision of the initial events: later events up to it are dropped
    size_t behind_max = 0;
    std::optional<Error> end;            // not yet returned
    const Delegate* delegate = nullptr;  // set while the owner sleeps: receives its events
    bool queued = false;                 // the delegate is queued for its thread
    bool delegating = false;             // the delegate is running
    bool called = false;                 // the delegate has returned false: the owner must wake up
    Revision delegated_upto = 0;
    bool ready() const { return begun && ((!events.empty() && !delegate) || end || called); }
  };
  const Kind& kind_;
  const std::string ns_;
  // These require the lock of the contents.
  Told take_first(Contents& contents);
  std::optional<Result<Told>> take_next(Contents& contents);
  Waitings clear(Contents& contents);

  const size_t behind_max_;
  std::atomic<size_t> awake_bytes_ = 0;  // of the contents; changed under their lock
  Guarded<Contents> contents_;
};

class Broadcaster {
 public:
  explicit Broadcaster(size_t superseded_bytes_max);
  ~Broadcaster();  // stops delivering

  std::shared_ptr<Inbox> join(const Kind& kind, const std::string& ns, size_t behind_max);
  std::unique_ptr<Watcher> begin_watcher(std::shared_ptr<Inbox> inbox, std::vector<RestingEvent> events, Revision upto);
  std::unique_ptr<Subscription> begin_subscription(std::shared_ptr<Inbox> inbox, std::vector<RestingEvent> events, Revision upto,
                                                   Callbacks callbacks);
  void leave(const std::shared_ptr<Inbox>& inbox);

  void publish(const std::vector<Event>& events);  // from one thread at a time, in order of revisions
  void end_watches(const Kind& kind, const Error& why);
  void stop(const Error& why);  // ends every watch; returns after the callbacks have run

 private:
  friend class BroadcastWatcher;
  friend class BroadcastSubscription;
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::jthread deliverer_, delegates_;
};

}  // namespace coracle::engine
