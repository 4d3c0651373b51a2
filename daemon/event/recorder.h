// SPDX-License-Identifier: Apache-2.0
// Events: what controllers, scheduler and node tell a person about an object ("Pulling", "FailedScheduling").
// Telling costs the caller a copy into a bounded queue, never a wait: one thread aggregates and writes.
//   recorder.normal(pod, …) ──▶ queue (bounded) ──▶ EventAggregator (pure) ──▶ Client: create, or patch count and time
// Repetition is not written again but counted; many similar messages become one "(combined from similar events)"; an
// object that cannot stop talking is limited. Source: Kubernetes Event v1; client-go tools/record (semantics).
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "store/client/client.h"

namespace coracle {

constexpr size_t kEventsQueuedMax = 1000;     // beyond that, new ones are dropped
constexpr size_t kEventsRememberedMax = 512;  // for counting repetitions
constexpr int kEventsSimilarMax = 10;         // different messages of one reason, within kEventsSimilarSpan
constexpr std::chrono::minutes kEventsSimilarSpan{10};
constexpr double kEventsBurst = 25;  // per source and object; then one per kEventsRefill
constexpr std::chrono::minutes kEventsRefill{5};

struct EventRecord {
  bool warning = false;
  std::string reason, message;
  std::string component, host;  // who tells it, and on which machine
  struct About {
    std::string api_version, kind, ns, name, uid, resource_version;
    std::string field_path;  // "spec.containers{web}" when it is about a part
  } about;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void post(EventRecord record) = 0;  // thread-safe, does not block
};

// What a room holds: its own name on every event. Cheap to copy.
class EventRecorder {
 public:
  EventRecorder(EventSink& sink, std::string component, std::string host = {})
      : sink_(&sink), component_(std::move(component)), host_(std::move(host)) {}
  void normal(const Object& about, std::string_view reason, std::string message, std::string field_path = {}) const {
    post(false, about, reason, std::move(message), std::move(field_path));
  }
  void warning(const Object& about, std::string_view reason, std::string message, std::string field_path = {}) const {
    post(true, about, reason, std::move(message), std::move(field_path));
  }

 private:
  void post(bool warning, const Object& about, std::string_view reason, std::string message, std::string field_path) const;
  EventSink* sink_;
  std::string component_, host_;
};

// Decides what is written. Pure but for its memory; not thread-safe.
class EventAggregator {
 public:
  struct Write {
    Key key;
    json::value body;  // a whole Event when `create`, else the merge patch for it
    bool create = false;
    uint64_t of = 0;  // the aggregator's own
  };
  // Nothing when the source talks too much.
  std::optional<Write> write(const EventRecord& record, WallTime now);
  // The event that was to be patched is gone (its hour is over): the next repetition is a new one.
  void forget(const Write& write);

 private:
  // What is remembered of an event is a few numbers in one place: texts by the hundred would lie between all else in memory.
  // Texts are known by their hashes; that two of them have one is as good as never.
  using Hash = uint64_t;
  struct Known {
    Hash of = 0;  // what is counted
    uint64_t used = 0;
    WallTime named{};  // when its event was
    int64_t count = 0;
  };
  struct Similar {
    Hash of = 0;  // the same without its message
    uint64_t used = 0;
    WallTime last{};
    std::array<uint32_t, kEventsSimilarMax> messages{};
    int count = 0;
  };
  struct Bucket {
    Hash of = 0;  // source and object
    uint64_t used = 0;
    double tokens = kEventsBurst;
    WallTime last{};
  };
  template <typename Entry>
  struct Recent {  // the last kEventsRememberedMax entries used
    std::vector<Entry> entries;
    uint64_t uses = 0;
    Entry& use(Hash of);
  };
  bool allowed(const EventRecord& record, WallTime now);
  bool combined(const EventRecord& record, WallTime now);
  Recent<Known> known_;
  Recent<Similar> similar_;
  Recent<Bucket> buckets_;
};

// Writes events through the client, from a thread of its own that sleeps while there is nothing to tell.
class EventWriter : public EventSink {
 public:
  explicit EventWriter(Client& client, const Clock& clock = system_clock());
  ~EventWriter() override;  // what is still queued is dropped
  void post(EventRecord record) override;

 private:
  void run(std::stop_token stop);
  void write(std::stop_token stop, const EventRecord& record);
  Client& client_;
  const Clock& clock_;
  EventAggregator aggregator_;  // run() only
  Guarded<std::list<EventRecord>> queue_;
  std::jthread thread_;
};

}  // namespace coracle
