// SPDX-License-Identifier: Apache-2.0
// Hub: brings each published event to every watch that it concerns, in order, without ever waiting for one of them.
//
//   publish(events) ─▶ inbox (bounded) ─▶ Watcher::take, by the thread that owns the watch
//                      inbox (bounded) ─▶ "store-watchers" thread ─▶ the stand-in of an owner who sleeps
//                      inbox (bounded) ─▶ "store-hub" thread ─▶ callbacks
// A watch that falls too far behind is ended with gone: it may miss the end of the story, never a part in the middle. Too far is
// so many events; or, when all inboxes together keep more superseded text alive than they may, who keeps most of it.
//
// A watch begins in two steps, because its first events are read elsewhere: join() catches what is published from now on,
// begin() puts the first events before that and drops what they contain already, come early or late.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "runtime/base/guarded.h"
#include "store/engine/engine.h"

namespace coracle::engine {

// Of an event, what nobody but those who have not taken it yet keeps alive: counted once, however many they are.
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

// An event as it was published, whose objects may be at hand in parsed form; or at rest, for who is behind.
using Told = std::variant<Event, RestingEvent>;

class Inbox {
 public:
  Inbox(const Kind& kind, std::string ns, size_t behind_max) : kind_(kind), ns_(std::move(ns)), behind_max_(behind_max) {}

  // For the hub. Who is to be told that there is something to take: the owner has been.
  enum class Tell { nobody, owner, stand_in };
  bool concerns(const Event& event) const;
  Tell push(Told told, SupersededPtr superseded, size_t awake_bytes);  // of one that concerns it
  size_t awake_bytes() const { return awake_bytes_; }                  // of the events that were pushed awake
  size_t superseded_bytes() const;                                     // that it keeps alive, with others or alone
  // Ends it, and drops what was not taken.
  void overflow(Error why);
  std::atomic<bool> subscribed = false;  // emptied by the hub thread; set before it is begun
  bool begin(std::vector<RestingEvent> events, Revision upto);
  bool end(Error why);
  void close();     // its owner is gone: nothing is taken any more
  void stand_in();  // what there is goes to the owner's stand-in, if it still sleeps

  // For who empties it. Nothing to take: nothing. An error is the end, given once.
  std::optional<Result<Event>> take();
  std::optional<Result<Event>> wait(std::stop_token stop, std::chrono::steady_clock::time_point deadline,
                                    const StandIn* stand_in);
  Revision stood_in_upto() const;  // of the last event that a stand-in took

 private:
  struct Waiting {
    Told told;
    SupersededPtr superseded;
    size_t awake_bytes = 0;  // of an event that is not at rest
    Revision revision() const {
      return std::visit([](const auto& event) { return event.revision; }, told);
    }
  };
  struct Contents {
    bool begun = false, ended = false, closed = false;
    std::deque<Waiting> events;
    size_t superseded_bytes = 0;
    Revision upto = 0;  // what the first events contain: its own event may still be on the way
    size_t behind_max = 0;
    std::optional<Error> end;           // not yet told
    const StandIn* stand_in = nullptr;  // the owner sleeps, and this takes its place …
    bool queued = false;                // … has something to take …
    bool standing_in = false;           // … and does so just now …
    bool called = false;                // … until it wants the owner back
    Revision stood_in_upto = 0;
    bool ready() const { return begun && ((!events.empty() && !stand_in) || end || called); }
  };
  const Kind& kind_;
  const std::string ns_;
  // Under the lock of the contents.
  Told take_first(Contents& contents);
  std::optional<Result<Told>> take_next(Contents& contents);
  std::deque<Waiting> clear(Contents& contents);

  const size_t behind_max_;
  std::atomic<size_t> awake_bytes_ = 0;  // of the contents; changed under their lock
  Guarded<Contents> contents_;
};

class Hub {
 public:
  explicit Hub(size_t superseded_bytes_max);
  ~Hub();  // stops delivering

  std::shared_ptr<Inbox> join(const Kind& kind, const std::string& ns, size_t behind_max);
  std::unique_ptr<Watcher> begin_watcher(std::shared_ptr<Inbox> inbox, std::vector<RestingEvent> events, Revision upto);
  std::unique_ptr<Subscription> begin_subscription(std::shared_ptr<Inbox> inbox, std::vector<RestingEvent> events, Revision upto,
                                                   Callbacks callbacks);
  void leave(const std::shared_ptr<Inbox>& inbox);

  void publish(const std::vector<Event>& events);  // from one thread at a time, in order of revisions
  void stop(const Error& why);                     // ends every watch; returns when the callbacks have been told

 private:
  friend class HubWatcher;
  friend class HubSubscription;
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::jthread deliverer_, stand_ins_;
};

}  // namespace coracle::engine
