// SPDX-License-Identifier: Apache-2.0
// Broadcaster. See broadcaster.h.
#include "store/engine/broadcaster.h"

#include <algorithm>

#include "runtime/base/thread.h"
#include "store/object/object.h"

namespace coracle::engine {
namespace {

// Limit of one inbox for events in parsed form: that is several times larger than the text, and a slow watcher can parse again.
constexpr size_t kAwakeBytesMax = 256 << 10;

// Text of the event that the store itself does not keep. Same as weight() in window.cc.
size_t superseded_bytes_of(const Event& event) {
  size_t bytes = event.before ? event.before->text().size() : 0;
  return event.type == EventType::deleted ? bytes + event.object->text().size() : bytes;
}

size_t text_bytes_of(const Event& event) {
  return event.object->text().size() + (event.before ? event.before->text().size() : 0);
}

Event awake(Told told) {
  if (auto* event = std::get_if<Event>(&told)) return std::move(*event);
  return awake(std::get<RestingEvent>(told));
}

std::optional<Result<Event>> awake(std::optional<Result<Told>> taken) {
  if (!taken) return std::nullopt;
  if (!*taken) return Result<Event>(taken->take_error());
  return Result<Event>(awake(**std::move(taken)));
}

}  // namespace

Told Inbox::take_first(Contents& contents) {
  Waiting& first = contents.events.front();
  contents.superseded_bytes -= first.superseded ? first.superseded->bytes() : 0;
  awake_bytes_ -= first.awake_bytes;
  Told told = std::move(first.told);
  contents.events.pop_front();
  return told;
}

std::optional<Result<Told>> Inbox::take_next(Contents& contents) {
  if (!contents.begun || contents.closed) return std::nullopt;
  if (!contents.events.empty()) return Result<Told>(take_first(contents));
  if (contents.end) return Result<Told>(*std::exchange(contents.end, std::nullopt));
  return std::nullopt;
}

Inbox::Waitings Inbox::clear(Contents& contents) {
  contents.superseded_bytes = awake_bytes_ = 0;
  return std::exchange(contents.events, {});
}

bool Inbox::concerns(const Event& event) const {
  return event.object->kind() == kind_ && (ns_.empty() || event.object->ns() == ns_);
}

size_t Inbox::superseded_bytes() const {
  return contents_.with([](const Contents& contents) { return contents.superseded_bytes; });
}

void Inbox::overflow(Error why) {
  auto dropped = contents_.with([&](Contents& contents) {  // freed outside the lock
    auto all = clear(contents);
    if (!std::exchange(contents.ended, true)) contents.end = std::move(why);
    return all;
  });
  contents_.notify();
}

Inbox::Tell Inbox::push(Told told, SupersededPtr superseded, size_t awake_bytes) {
  Waiting waiting{std::move(told), std::move(superseded), awake_bytes};
  Tell tell = contents_.with([&](Contents& contents) {
    if (contents.ended || contents.closed || waiting.revision() <= contents.upto) return Tell::nobody;
    size_t most = std::max(contents.behind_max, behind_max_);
    if (contents.events.size() < most) {
      awake_bytes_ += awake_bytes;
      contents.superseded_bytes += waiting.superseded ? waiting.superseded->bytes() : 0;
      contents.events.push_back(std::move(waiting));
    } else {
      contents.ended = true;
      contents.end = Error(Code::gone, "the watch is too slow: more than " + std::to_string(most) + " events behind");
    }
    if (!contents.begun) return Tell::nobody;
    if (!contents.delegate || contents.end) return Tell::owner;
    if (contents.called) return Tell::nobody;  // the owner is waking up and takes the rest
    return std::exchange(contents.queued, true) ? Tell::nobody : Tell::delegate;
  });
  if (tell == Tell::owner) contents_.notify();
  return tell;
}

void Inbox::delegate() {
  bool all_well = true, awaited = false;
  const Delegate* delegate = nullptr;
  auto next = [&](Contents& contents) -> std::optional<Told> {
    if (!all_well || !contents.delegate || contents.events.empty()) return std::nullopt;
    delegate = contents.delegate;
    contents.delegating = true;
    contents.delegated_upto = contents.events.front().revision();
    return take_first(contents);
  };
  auto leave = [&](Contents& contents) {  // unless more events have arrived
    if (all_well && contents.delegate && !contents.events.empty()) return false;
    contents.called = contents.delegate && !all_well;
    contents.queued = contents.delegating = false;
    awaited = contents.called || !contents.delegate;  // the owner may already be waiting for this
    return true;
  };
  do {
    while (auto told = contents_.with(next)) all_well = delegate->event(awake(*std::move(told)));
    if (delegate) all_well = delegate->rest() && all_well;
  } while (!contents_.with(leave));
  if (awaited) contents_.notify();
}

bool Inbox::begin(std::vector<RestingEvent> events, Revision upto) {
  bool ready = contents_.with([&](Contents& contents) {
    while (!contents.events.empty() && contents.events.front().revision() <= upto) (void)take_first(contents);
    for (auto event = events.rbegin(); event != events.rend(); ++event)
      contents.events.push_front({std::move(*event), nullptr, 0});
    contents.behind_max = contents.events.size() + behind_max_;  // the initial events do not count as delay
    contents.upto = upto;
    contents.begun = true;
    return contents.ready();
  });
  contents_.notify();
  return ready;
}

bool Inbox::end(Error why) {
  bool ready = contents_.with([&](Contents& contents) {
    if (contents.ended) return false;
    contents.ended = true;
    contents.end = std::move(why);
    return contents.begun;
  });
  contents_.notify();
  return ready;
}

void Inbox::close() {
  auto dropped = contents_.with([this](Contents& contents) {
    contents.closed = true;
    return clear(contents);
  });
}

std::optional<Result<Event>> Inbox::take() {
  return awake(contents_.with([this](Contents& contents) { return take_next(contents); }));
}

std::optional<Result<Event>> Inbox::wait(std::stop_token stop, std::chrono::steady_clock::time_point deadline,
                                         const Delegate* delegate) {
  auto ready = [](const Contents& contents) { return contents.ready(); };
  auto take = [this](Contents& contents) { return take_next(contents); };
  if (!delegate) return awake(contents_.wait_until(std::move(stop), deadline, ready, take));
  contents_.with([&](Contents& contents) {
    if (contents.begun && contents.events.empty()) contents.delegate = delegate;
  });
  contents_.wait_until(std::move(stop), deadline, ready, [](Contents& contents) {
    contents.delegate = nullptr;
    contents.called = false;
  });
  return awake(contents_.wait(
      {}, [](const Contents& contents) { return !contents.delegating; }, take));
}

Revision Inbox::delegated_upto() const {
  return contents_.with([](const Contents& contents) { return contents.delegated_upto; });
}

// State that outlives the broadcaster: watches may be destroyed after it.
struct Broadcaster::Shared {
  explicit Shared(size_t superseded_bytes_max) : superseded_bytes_max(superseded_bytes_max) {}

  using Inboxes = std::vector<std::shared_ptr<Inbox>>;
  const size_t superseded_bytes_max;
  const std::shared_ptr<std::atomic<size_t>> superseded_bytes = std::make_shared<std::atomic<size_t>>(0);
  struct Push {  // one subscription
    std::shared_ptr<Inbox> inbox;
    Callbacks callbacks;
    bool queued = false, delivering = false, closed = false;
  };
  struct Work {
    std::vector<std::shared_ptr<Push>> pushes;
    std::deque<std::shared_ptr<Push>, sys::SlabAllocator<std::shared_ptr<Push>>> ready;
    bool stopped = false;
  };

  Guarded<std::shared_ptr<const Inboxes>> inboxes{
      std::make_shared<const Inboxes>()};  // copied on change, so that publish() needs no lock
  Guarded<Work> work;
  Guarded<Inboxes> asleep;  // inboxes whose delegates have events
  std::atomic<Revision> published = 0;
  std::atomic<std::thread::id> delivery_thread;

  void remove(const std::shared_ptr<Inbox>& inbox) {
    inbox->close();
    inboxes.with([&](std::shared_ptr<const Inboxes>& current) {
      auto next = std::make_shared<Inboxes>(*current);
      std::erase(*next, inbox);
      current = std::move(next);
    });
  }
  void end_those(const std::function<bool(const Inbox&)>& which, const Error& why);
  // Ends the watches that keep most until the total is below the limit. Subscriptions never count, because they keep up.
  void end_those_behind(const Inboxes& all) {
    if (*superseded_bytes <= superseded_bytes_max) return;
    std::vector<std::pair<size_t, Inbox*>> behind;
    for (const auto& inbox : all)
      if (size_t bytes = inbox->superseded_bytes(); bytes > 0) behind.emplace_back(bytes, inbox.get());
    std::sort(behind.rbegin(), behind.rend());
    for (auto [bytes, inbox] : behind) {
      if (*superseded_bytes <= superseded_bytes_max) return;
      inbox->overflow(Error(Code::gone, "the watch is too slow: " + std::to_string(bytes) + " bytes of old objects wait for it"));
    }
  }
  // Queues a subscription with new events for the broadcaster thread.
  void wake(const Inbox* inbox) {
    bool queued = work.with([&](Work& work) {
      auto push = std::ranges::find(work.pushes, inbox, [](const auto& each) { return each->inbox.get(); });
      if (push == work.pushes.end() || std::exchange((*push)->queued, true)) return false;
      work.ready.push_back(*push);
      return true;
    });
    if (queued) work.notify();
  }
  void deliver(std::stop_token stop);
  void delegate(std::stop_token stop);
};

// The thread of the delegates: delivers the queued events of sleeping owners.
void Broadcaster::Shared::delegate(std::stop_token stop) {
  for (;;) {
    Inboxes all = asleep.wait(
        stop, [](const Inboxes& asleep) { return !asleep.empty(); }, [](Inboxes& asleep) { return std::exchange(asleep, {}); });
    if (all.empty()) return;
    for (const auto& inbox : all) inbox->delegate();
  }
}

// The broadcaster thread: takes one subscription with events, delivers all of them, and continues with the next.
void Broadcaster::Shared::deliver(std::stop_token stop) {
  delivery_thread = std::this_thread::get_id();
  for (;;) {
    std::shared_ptr<Push> push;
    bool finished = work.wait(
        stop, [](const Work& work) { return !work.ready.empty() || work.stopped; },
        [&](Work& work) {
          if (work.ready.empty()) return true;
          push = std::move(work.ready.front());
          work.ready.pop_front();
          push->queued = false;
          push->delivering = !push->closed;
          return false;
        });
    if (finished) return;
    bool open = true;
    while (open && work.with([&](Work&) { return !push->closed; })) {
      auto taken = push->inbox->take();
      if (!taken) break;
      open = taken->ok();
      if (open) push->callbacks.event(**taken);
      else push->callbacks.end(taken->error());
    }
    work.with([&](Work&) { push->delivering = false; });
    work.notify();
  }
}

class BroadcastWatcher : public Watcher {
 public:
  BroadcastWatcher(std::shared_ptr<Broadcaster::Shared> shared, std::shared_ptr<Inbox> inbox, Revision upto)
      : shared_(std::move(shared)), inbox_(std::move(inbox)), progress_(upto) {}
  ~BroadcastWatcher() override { shared_->remove(inbox_); }

  Result<std::optional<Event>> take(std::stop_token stop, std::chrono::steady_clock::time_point deadline,
                                    const Delegate* delegate) override {
    auto taken = inbox_->wait(std::move(stop), deadline, delegate);
    if (delegate) progress_ = std::max(progress_, inbox_->delegated_upto());
    if (!taken) {  // read `published` first: events up to it are queued or not ours
      Revision published = shared_->published;
      taken = inbox_->take();
      if (!taken) {
        progress_ = std::max(progress_, published);
        return std::optional<Event>();
      }
    }
    if (!*taken) return taken->take_error();
    progress_ = std::max(progress_, (*taken)->revision);
    return std::optional<Event>(**std::move(taken));
  }
  Revision progress() const override { return progress_; }

 private:
  std::shared_ptr<Broadcaster::Shared> shared_;
  std::shared_ptr<Inbox> inbox_;
  Revision progress_;
};

class BroadcastSubscription : public Subscription {
 public:
  BroadcastSubscription(std::shared_ptr<Broadcaster::Shared> shared, std::shared_ptr<Broadcaster::Shared::Push> push)
      : shared_(std::move(shared)), push_(std::move(push)) {}
  ~BroadcastSubscription() override {
    shared_->remove(push_->inbox);
    bool inside = std::this_thread::get_id() == shared_->delivery_thread.load();
    auto leave = [this](Broadcaster::Shared::Work& work) {
      push_->closed = true;
      std::erase(work.pushes, push_);
      std::erase(work.ready, push_);
    };
    shared_->work.with(leave);
    if (!inside)
      shared_->work.wait(
          {}, [this](const Broadcaster::Shared::Work&) { return !push_->delivering; }, [](auto&) {});
  }

 private:
  std::shared_ptr<Broadcaster::Shared> shared_;
  std::shared_ptr<Broadcaster::Shared::Push> push_;
};

Broadcaster::Broadcaster(size_t superseded_bytes_max)
    : shared_(std::make_shared<Shared>(superseded_bytes_max)),
      deliverer_(start_thread("broadcaster", [shared = shared_](std::stop_token stop) { shared->deliver(stop); })),
      delegates_(start_thread("store-watchers", [shared = shared_](std::stop_token stop) { shared->delegate(stop); })) {}

Broadcaster::~Broadcaster() { stop(Error(Code::unavailable, "the store is closing")); }

std::shared_ptr<Inbox> Broadcaster::join(const Kind& kind, const std::string& ns, size_t behind_max) {
  auto inbox = std::make_shared<Inbox>(kind, ns, behind_max);
  shared_->inboxes.with([&](std::shared_ptr<const Shared::Inboxes>& current) {
    auto next = std::make_shared<Shared::Inboxes>(*current);
    next->push_back(inbox);
    current = std::move(next);
  });
  return inbox;
}

void Broadcaster::leave(const std::shared_ptr<Inbox>& inbox) { shared_->remove(inbox); }

std::unique_ptr<Watcher> Broadcaster::begin_watcher(std::shared_ptr<Inbox> inbox, std::vector<RestingEvent> events,
                                                    Revision upto) {
  inbox->begin(std::move(events), upto);
  return std::make_unique<BroadcastWatcher>(shared_, std::move(inbox), upto);
}

std::unique_ptr<Subscription> Broadcaster::begin_subscription(std::shared_ptr<Inbox> inbox, std::vector<RestingEvent> events,
                                                              Revision upto, Callbacks callbacks) {
  auto push = std::make_shared<Shared::Push>();
  push->inbox = inbox;
  inbox->subscribed = true;
  push->callbacks = std::move(callbacks);
  shared_->work.with([&](Shared::Work& work) { work.pushes.push_back(push); });
  if (inbox->begin(std::move(events), upto)) shared_->wake(inbox.get());
  return std::make_unique<BroadcastSubscription>(shared_, std::move(push));
}

void Broadcaster::publish(const std::vector<Event>& events) {
  if (events.empty()) return;
  auto inboxes = shared_->inboxes.with([](const auto& current) { return current; });
  Shared::Inboxes asleep;
  std::vector<SupersededPtr> superseded(events.size());
  for (const auto& inbox : *inboxes) {
    bool owner = false;
    for (size_t i = 0; i < events.size(); i++) {
      const Event& event = events[i];
      if (!inbox->concerns(event)) continue;
      size_t bytes = inbox->subscribed || superseded[i] ? 0 : superseded_bytes_of(event);
      if (bytes > 0) superseded[i] = std::make_shared<Superseded>(shared_->superseded_bytes, bytes);
      size_t text_bytes = text_bytes_of(event);
      bool rests = inbox->awake_bytes() + text_bytes > kAwakeBytesMax;  // it is slow
      Inbox::Tell tell = inbox->push(rests ? Told(at_rest(event)) : Told(event), inbox->subscribed ? nullptr : superseded[i],
                                     rests ? 0 : text_bytes);
      owner |= tell == Inbox::Tell::owner;
      if (tell == Inbox::Tell::delegate) asleep.push_back(inbox);
    }
    if (owner && inbox->subscribed) shared_->wake(inbox.get());
  }
  superseded.clear();
  shared_->end_those_behind(*inboxes);
  if (!asleep.empty()) {
    shared_->asleep.with([&](Shared::Inboxes& all) { all.insert(all.end(), asleep.begin(), asleep.end()); });
    shared_->asleep.notify();
  }
  shared_->published = events.back().revision;
}

void Broadcaster::Shared::end_those(const std::function<bool(const Inbox&)>& which, const Error& why) {
  auto all = inboxes.with([](const auto& current) { return current; });
  for (const auto& inbox : *all)
    if (which(*inbox) && inbox->end(why) && inbox->subscribed) wake(inbox.get());
}

void Broadcaster::end_watches(const Kind& kind, const Error& why) {
  shared_->end_those([&](const Inbox& inbox) { return inbox.kind() == kind; }, why);
}

void Broadcaster::stop(const Error& why) {
  shared_->end_those([](const Inbox&) { return true; }, why);
  shared_->work.with([](Shared::Work& work) { work.stopped = true; });
  shared_->work.notify();
  if (deliverer_.joinable()) deliverer_.join();
  delegates_.request_stop();
  if (delegates_.joinable()) delegates_.join();
}

}  // namespace coracle::engine
