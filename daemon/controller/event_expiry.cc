// SPDX-License-Identifier: Apache-2.0
// Event expiry: an event is of interest for an hour after it was written last, by a clock that does not jump; and of more than
// Config::events_max the oldest go at once, a tenth of them, so that not each new one has to look. One timer for all: it is set
// to the oldest event's end and sleeps until then. Source: Kubernetes --event-ttl.
#include <algorithm>
#include <map>

#include "daemon/controller/common.h"
#include "daemon/controller/controller.h"

namespace coracle::controller {
namespace {

const Key kAll{"", "all"};
constexpr std::chrono::seconds kTogether{30};  // what ends soon after goes in the same turn

// For those that were there at the start. Parses for itself: the shared snapshots stay text.
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
        most_(context.config.events_max),
        events_(context.informers.of(kEvent)) {}

  std::string_view name() const override { return "eventexpiry"; }

  void subscribe(const LookAt& look_at) override {
    events_.on_change([=, this](const Informer::Change& change) {
      size_t there = written_.with([&](auto& written) {
        if (change.after)
          written[change.after->key()] = events_.synced() ? clock_.steady() : clock_.steady() - age(*change.after);
        else written.erase(change.before->key());
        return written.size();
      });
      if (change.before) return;
      // What was there at the start has its time behind it; what is new will end no earlier than what is waited for.
      if (!events_.synced() || there > most_) look_at.now(kAll);
      else look_at.after(kAll, ttl_);
    });
  }

  Result<Outcome> reconcile(const Key&) override {
    std::vector<std::pair<SteadyTime, Key>> oldest_first;
    written_.with([&](const auto& written) {
      for (const auto& [key, when] : written) oldest_first.emplace_back(when, key);
    });
    std::sort(oldest_first.begin(), oldest_first.end());
    size_t left = oldest_first.size(), enough = left > most_ ? most_ - most_ / 10 : left;
    for (const auto& [when, key] : oldest_first) {
      std::chrono::nanoseconds until = when + ttl_ - clock_.steady();
      if (until > kTogether && left <= enough) return Outcome{until};
      auto removed = client_.remove(kEvent, key);
      if (!removed && removed.error().code() != Code::not_found) return removed.take_error().wrap("expire event");
      --left;
    }
    return Outcome{};
  }

 private:
  std::chrono::nanoseconds age(const Object& event) const {
    return std::clamp<std::chrono::nanoseconds>(clock_.now() - last_seen(event), std::chrono::nanoseconds(0), ttl_);
  }

  Client& client_;
  const Clock& clock_;
  const std::chrono::seconds ttl_;
  const size_t most_;
  Informer& events_;
  Guarded<std::map<Key, SteadyTime>> written_;  // all there are, and when they were written last
};

}  // namespace

std::unique_ptr<Controller> make_event_expiry(const Context& context) { return std::make_unique<EventExpiry>(context); }

}  // namespace coracle::controller
