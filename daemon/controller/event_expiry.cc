// SPDX-License-Identifier: Apache-2.0
// Event expiry: an event is of interest for an hour. One timer for all: it is set to the oldest event's end and sleeps
// until then. Source: Kubernetes --event-ttl.
#include <algorithm>

#include "daemon/controller/common.h"
#include "daemon/controller/controller.h"

namespace coracle::controller {
namespace {

const Key kAll{"", "all"};
constexpr std::chrono::seconds kTogether{30};  // what ends soon after goes in the same turn

// Parses for itself: the shared snapshots stay text.
WallTime last_seen(const Object& event) {
  auto body = parse_json(event.text());
  WallTime last{};
  if (!body) return last;
  for (const char* field :
       {"metadata.creationTimestamp", "firstTimestamp", "lastTimestamp", "eventTime", "series.lastObservedTime"})
    if (auto time = parse_time(get_string(*body, field))) last = std::max(last, *time);
  return last;
}

class EventExpiry : public Controller {
 public:
  explicit EventExpiry(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        ttl_(context.config.event_ttl),
        events_(context.informers.of(kEvent)) {}

  std::string_view name() const override { return "eventexpiry"; }

  void subscribe(const LookAt& look_at) override {
    look_at_ = look_at;
    events_.on_change([=, this](const Informer::Change& change) {
      if (change.before) return;
      // What was there at the start has its time behind it; what is new will end no earlier than what is waited for.
      if (events_.synced())
        look_at.after(kAll, ttl_);
      else
        look_at.now(kAll);
    });
  }

  void clock_was_set() override { look_at_.now(kAll); }

  Result<Outcome> reconcile(const Key&) override {
    std::optional<std::chrono::nanoseconds> next;
    for (const ObjectPtr& event : events_.list()) {
      std::chrono::nanoseconds left = last_seen(*event) + ttl_ - clock_.now();
      if (left <= kTogether) {
        auto removed = client_.remove(kEvent, event->key(), {.uid = event->uid()});
        bool gone = removed || removed.error().code() == Code::not_found || removed.error().code() == Code::conflict;
        if (!gone) return removed.take_error().wrap("expire event");
      } else if (!next || left < *next) {
        next = left;
      }
    }
    return Outcome{next};
  }

 private:
  Client& client_;
  const Clock& clock_;
  const std::chrono::seconds ttl_;
  Informer& events_;
  LookAt look_at_;
};

}  // namespace

std::unique_ptr<Controller> make_event_expiry(const Context& context) { return std::make_unique<EventExpiry>(context); }

}  // namespace coracle::controller
