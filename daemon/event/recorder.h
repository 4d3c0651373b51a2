// SPDX-License-Identifier: Apache-2.0
// Events of controllers, scheduler and node about an object ("Pulling", "FailedScheduling"). Recording one copies it to a bounded
// queue and never blocks; one thread aggregates and writes them.
//   recorder.normal(pod, …) ──▶ queue (bounded) ──▶ EventAggregator (pure) ──▶ Client: create, or patch count and time
// Repeated events increase a count. Many similar events become one "(combined from similar events)". The rate per source and
// object is limited. Source: Kubernetes Event v1; client-go tools/record (semantics).
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

constexpr size_t kEventsQueuedMax = 1000;     // beyond that, new events are dropped
constexpr size_t kEventsRememberedMax = 512;  // for counting repetitions
constexpr int kEventsSimilarMax = 10;         // different messages with one reason, within kEventsSimilarSpan
constexpr std::chrono::minutes kEventsSimilarSpan{10};
constexpr double kEventsBurst = 25;  // per source and object; refilled by one per kEventsRefill
constexpr std::chrono::minutes kEventsRefill{5};

struct EventRecord {
  bool warning = false;
  std::string reason, message;
  std::string component, host;  // the reporting component and its machine
  struct About {
    std::string api_version, kind, ns, name, uid, resource_version;
    std::string field_path;  // "spec.containers{web}" for a part of the object
  } about;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void post(EventRecord record) = 0;  // thread-safe, does not block
};

// A component's access to events; it adds the component's name. Cheap to copy.
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

// Decides which events are written. Pure except for its memory; not thread-safe.
class EventAggregator {
 public:
  struct Write {
    Key key;
    json::value body;  // a whole Event if `create`, else a merge patch
    bool create = false;
    uint64_t of = 0;  // used by the aggregator
  };
  // nullopt if the source exceeds its rate.
  std::optional<Write> write(const EventRecord& record, WallTime now);
  // The event to patch does not exist any more (it has expired): the next repetition creates a new one.
  void forget(const Write& write);

 private:
  // Remembered events are stored as a few numbers in one array; hundreds of strings would fragment memory. Texts are identified
  // by their hashes; a collision is improbable enough.
  using Hash = uint64_t;
  struct Known {
    Hash of = 0;  // identifies what is counted
    uint64_t used = 0;
    WallTime named{};  // time in its event's name
    int64_t count = 0;
  };
  struct Similar {
    Hash of = 0;  // identifies the event without its message
    uint64_t used = 0;
    WallTime last{};
    std::array<uint32_t, kEventsSimilarMax> messages{};
    int count = 0;
  };
  struct Bucket {
    Hash of = 0;  // identifies source and object
    uint64_t used = 0;
    double tokens = kEventsBurst;
    WallTime last{};
  };
  template <typename Entry>
  struct Recent {  // the kEventsRememberedMax entries used last
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

// Writes events through the client, on a thread of its own that sleeps while the queue is empty.
class EventWriter : public EventSink {
 public:
  explicit EventWriter(Client& client, const Clock& clock = system_clock());
  ~EventWriter() override;  // drops queued events
  void post(EventRecord record) override;

 private:
  void run(std::stop_token stop);
  void write(std::stop_token stop, const EventRecord& record);
  Client& client_;
  const Clock& clock_;
  EventAggregator aggregator_;  // used by run() only
  Guarded<std::list<EventRecord>> queue_;
  std::jthread thread_;
};

}  // namespace coracle
