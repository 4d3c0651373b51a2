// SPDX-License-Identifier: Apache-2.0
// Hub: brings each published event to every watch that it concerns, in order, without ever waiting for one of them.
//
//   publish(events) ─▶ inbox (bounded) ─▶ Watcher::take, by the thread that owns the watch
//                      inbox (bounded) ─▶ "store-watchers" thread ─▶ the stand-in of an owner who sleeps
//                      inbox (bounded) ─▶ "store-hub" thread ─▶ callbacks
// A watch that falls too far behind is ended with gone: it may miss the end of the story, never a part in the middle.
//
// A watch begins in two steps, because its first events are read elsewhere: join() catches what is published from now on,
// begin() puts the first events before that and drops what they contain already, come early or late.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/base/guarded.h"
#include "store/engine/engine.h"

namespace coracle::engine {

class Inbox {
 public:
  Inbox(const Kind& kind, std::string ns, size_t behind_max) : kind_(kind), ns_(std::move(ns)), behind_max_(behind_max) {}

  // For the hub. Who is to be told that there is something to take: the owner has been.
  enum class Tell { nobody, owner, stand_in };
  Tell push(const Event& event);
  bool subscribed = false;  // emptied by the hub thread; set before it is begun
  bool begin(std::vector<Event> events, Revision upto);
  bool end(Error why);
  void close();     // its owner is gone: nothing is taken any more
  void stand_in();  // what there is goes to the owner's stand-in, if it still sleeps

  // For who empties it. Nothing to take: nothing. An error is the end, given once.
  std::optional<Result<Event>> take();
  std::optional<Result<Event>> wait(std::stop_token stop, std::chrono::steady_clock::time_point deadline,
                                    const StandIn* stand_in);
  Revision stood_in_upto() const;  // of the last event that a stand-in took

 private:
  struct Contents {
    bool begun = false, ended = false, closed = false;
    std::deque<Event> events;
    Revision upto = 0;  // what the first events contain: its own event may still be on the way
    size_t behind_max = 0;
    std::optional<Error> end;           // not yet told
    const StandIn* stand_in = nullptr;  // the owner sleeps, and this takes its place …
    bool queued = false;                // … has something to take …
    bool standing_in = false;           // … and does so just now …
    bool called = false;                // … until it wants the owner back
    Revision stood_in_upto = 0;
    bool ready() const { return begun && ((!events.empty() && !stand_in) || end || called); }
    std::optional<Result<Event>> take();
  };
  const Kind& kind_;
  const std::string ns_;
  const size_t behind_max_;
  Guarded<Contents> contents_;
};

class Hub {
 public:
  Hub();
  ~Hub();  // stops delivering

  std::shared_ptr<Inbox> join(const Kind& kind, const std::string& ns, size_t behind_max);
  std::unique_ptr<Watcher> begin_watcher(std::shared_ptr<Inbox> inbox, std::vector<Event> events, Revision upto);
  std::unique_ptr<Subscription> begin_subscription(std::shared_ptr<Inbox> inbox, std::vector<Event> events, Revision upto,
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
