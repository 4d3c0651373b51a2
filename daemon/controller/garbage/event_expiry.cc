// SPDX-License-Identifier: Apache-2.0
// Event expiry: deletes events one hour after their last write, measured by the steady clock. Above Config::events_max, in number
// or in bytes, the oldest tenth is deleted at once, so that not every new event triggers a deletion. One timer serves all events:
// it is set to the end of the oldest one. Source: Kubernetes --event-ttl.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"

namespace coracle::controller {
namespace {

const Key kAll{"", "all"};
constexpr std::chrono::seconds kTogether{30};  // events that expire soon after are deleted in the same pass

// For events that existed at the start. It parses the text itself, because the shared snapshots stay unparsed.
WallTime last_seen(const Object& event) {
  auto body = parse_json(event.text());
  WallTime last{};
  if (!body) return last;
  view::Event view(*body);
  for (std::string_view written : {view.metadata().creation_timestamp(), view.first_timestamp(), view.last_timestamp(),
                                   view.event_time(), view.series().last_observed_time()})
    if (auto time = parse_time(written)) last = std::max(last, *time);
  return last;
}

class EventExpiry : public Controller {
 public:
  explicit EventExpiry(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        ttl_(context.config.event_ttl),
        most_{context.config.events_max, context.config.events_bytes_max},
        events_(context.informers.of(kEvent)) {}

  std::string_view name() const override { return "eventexpiry"; }

  void subscribe(const Enqueue& enqueue) override {
    events_.on_change([=, this](const Informer::Change& change) {
      bool too_many = written_.with([&](Written& written) {
        if (change.before) written.erase(change.before->key());
        if (change.after) {
          SteadyTime now = clock_.steady();
          written.put(change.after->at_rest(), events_.synced() ? now : now - age(*change.after));
        }
        return written.there.exceeds(most_);
      });
      bool grew = change.after && too_many;
      if (change.before && !grew) return;
      // Events that existed at the start are partly over; a new event ends after the ones that are waited for already.
      if (!events_.synced() || too_many) enqueue.now(kAll);
      else enqueue.after(kAll, ttl_);
    });
  }

  Result<Outcome> reconcile(const Key&) override {
    auto [oldest_first, left] =
        written_.with([](const Written& written) { return std::pair(written.oldest_first, written.there); });
    const Amount enough = left.exceeds(most_) ? Amount{most_.count - most_.count / 10, most_.bytes - most_.bytes / 10} : most_;
    for (const auto& [event, when] : oldest_first) {
      std::chrono::nanoseconds until = when + ttl_ - clock_.steady();
      if (until > kTogether && !left.exceeds(enough)) return Outcome{until};
      auto removed = client_.remove(kEvent, Key(event->key()));
      if (!removed && removed.error().code() != Code::not_found) return removed.take_error().wrap("expire event");
      left.count -= 1, left.bytes -= event->text_size();
    }
    return Outcome{};
  }

 private:
  struct Amount {
    size_t count = 0, bytes = 0;
    bool exceeds(const Amount& most) const { return count > most.count || bytes > most.bytes; }
  };
  struct Last {
    RestingPtr event;
    SteadyTime when;  // time of its last write
  };
  struct Written {
    std::vector<Last, sys::SlabAllocator<Last>>
        oldest_first;  // searched from the end: it is short, and mostly recent events change
    Amount there;
    void put(const RestingPtr& event, SteadyTime when) {
      auto place = std::ranges::upper_bound(oldest_first, when, {}, &Last::when);
      oldest_first.insert(place, {event, when});
      there.count += 1, there.bytes += event->text_size();
    }
    void erase(KeyView key) {
      auto found =
          std::find_if(oldest_first.rbegin(), oldest_first.rend(), [&](const Last& last) { return last.event->key() == key; });
      if (found == oldest_first.rend()) return;
      there.count -= 1, there.bytes -= found->event->text_size();
      oldest_first.erase(std::next(found).base());
    }
  };
  std::chrono::nanoseconds age(const Object& event) const {
    return std::clamp<std::chrono::nanoseconds>(clock_.now() - last_seen(event), std::chrono::nanoseconds(0), ttl_);
  }

  Client& client_;
  const Clock& clock_;
  const std::chrono::seconds ttl_;
  const Amount most_;
  Informer& events_;
  Guarded<Written> written_;
};

}  // namespace

std::unique_ptr<Controller> make_event_expiry(const Context& context) { return std::make_unique<EventExpiry>(context); }

}  // namespace coracle::controller
