// SPDX-License-Identifier: Apache-2.0
// Aggregates events and writes them on a thread. See recorder.h.
#include "daemon/event/recorder.h"

#include <algorithm>
#include <functional>

#include "runtime/base/log.h"
#include "runtime/base/thread.h"
#include "store/object/object.h"

namespace coracle {
namespace {

constexpr int kWriteTriesMax = 4;
constexpr std::chrono::seconds kWriteRetry{2};

std::string identity(const EventRecord& record, bool with_message) {
  const auto& about = record.about;
  std::string text;
  for (const std::string* part :
       {&record.component, &record.host, &about.kind, &about.ns, &about.name, &about.uid, &about.field_path, &record.reason})
    text.append(*part).push_back('\0');
  text += record.warning ? 'W' : 'N';
  return with_message ? text + record.message : text;
}

uint64_t hash_of(const std::string& text) { return std::hash<std::string>()(text); }

std::string event_name(const std::string& about, WallTime now) {
  char stamp[17];
  auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  std::snprintf(stamp, sizeof stamp, "%llx", static_cast<unsigned long long>(nanos));
  constexpr size_t kNameMax = 253;
  return about.substr(0, kNameMax - sizeof stamp) + "." + stamp;
}

json::value about_json(const EventRecord::About& about) {
  json::object out{{"kind", about.kind}};
  auto put = [&](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  put("namespace", about.ns);
  out["name"] = about.name;
  put("uid", about.uid);
  put("apiVersion", about.api_version);
  put("resourceVersion", about.resource_version);
  put("fieldPath", about.field_path);
  return out;
}

json::value event_json(const EventRecord& record, const Key& key, const std::string& message, WallTime now) {
  json::object source{{"component", record.component}};
  if (!record.host.empty()) source["host"] = record.host;
  std::string time = format_time(now);
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
          {"involvedObject", about_json(record.about)},
          {"reason", record.reason},
          {"message", message},
          {"source", std::move(source)},
          {"firstTimestamp", time},
          {"lastTimestamp", time},
          {"count", 1},
          {"type", record.warning ? "Warning" : "Normal"},
          {"eventTime", nullptr},
          {"reportingComponent", record.component},
          {"reportingInstance", record.host}};
}

}  // namespace

void EventRecorder::post(bool warning, const Object& about, std::string_view reason, std::string message,
                         std::string field_path) const {
  const Kind& kind = about.kind();
  sink_->post({warning,
               std::string(reason),
               std::move(message),
               component_,
               host_,
               {kind.api_version(), std::string(kind.kind), about.ns(), about.name(), about.uid(),
                about.revision() ? std::to_string(about.revision()) : "", std::move(field_path)}});
}

template <typename Entry>
Entry& EventAggregator::Recent<Entry>::use(Hash of) {
  entries.reserve(kEventsRememberedMax);  // once: what a vector outgrows leaves holes
  auto found = std::ranges::find(entries, of, &Entry::of);
  if (found == entries.end() && entries.size() < kEventsRememberedMax) found = entries.insert(entries.end(), Entry{of});
  else if (found == entries.end()) *(found = std::ranges::min_element(entries, {}, &Entry::used)) = Entry{of};
  found->used = ++uses;
  return *found;
}

bool EventAggregator::allowed(const EventRecord& record, WallTime now) {
  Bucket& bucket =
      buckets_.use(hash_of(record.component + '\0' + record.about.uid + '\0' + record.about.ns + '\0' + record.about.name));
  if (bucket.last != WallTime{}) {
    double refilled = std::chrono::duration<double>(now - bucket.last) / std::chrono::duration<double>(kEventsRefill);
    bucket.tokens = std::min(bucket.tokens + std::max(refilled, 0.0), kEventsBurst);  // setting the clock back removes nothing
  }
  bucket.last = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

bool EventAggregator::combined(const EventRecord& record, WallTime now) {
  Similar& similar = similar_.use(hash_of(identity(record, false)));
  if (std::chrono::abs(now - similar.last) > kEventsSimilarSpan) similar.count = 0;
  similar.last = now;
  const auto message = uint32_t(hash_of(record.message));
  auto end = similar.messages.begin() + similar.count;
  if (std::find(similar.messages.begin(), end, message) != end) return false;
  if (similar.count == kEventsSimilarMax) return true;
  similar.messages[size_t(similar.count++)] = message;
  return false;
}

std::optional<EventAggregator::Write> EventAggregator::write(const EventRecord& record, WallTime now) {
  if (!allowed(record, now)) return std::nullopt;
  bool combine = combined(record, now);
  std::string message = (combine ? "(combined from similar events): " : "") + record.message;
  Known& known = known_.use(hash_of(identity(record, !combine)));
  bool create = known.count++ == 0;
  if (create) known.named = now;
  Key event{record.about.ns.empty() ? "default" : record.about.ns, event_name(record.about.name, known.named)};
  json::value body = create ? event_json(record, event, message, now)
                            : json::value{{"count", known.count}, {"lastTimestamp", format_time(now)}, {"message", message}};
  return Write{std::move(event), std::move(body), create, known.of};
}

void EventAggregator::forget(const Write& write) {
  for (Known& known : known_.entries)
    if (known.of == write.of) known.count = 0;
}

EventWriter::EventWriter(Client& client, const Clock& clock)
    : client_(client), clock_(clock), thread_(start_thread("events", [this](std::stop_token stop) { run(stop); })) {}

EventWriter::~EventWriter() = default;

void EventWriter::post(EventRecord record) {
  queue_.with([&](std::list<EventRecord>& queue) {
    if (queue.size() < kEventsQueuedMax) queue.push_back(std::move(record));
  });
  queue_.notify();
}

void EventWriter::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    auto waiting = queue_.wait(
        stop, [](const auto& queue) { return !queue.empty(); },
        [](auto& queue) {
          std::list<EventRecord> first;
          if (!queue.empty()) first.splice(first.begin(), queue, queue.begin());
          return first;
        });
    for (const EventRecord& record : waiting) write(stop, record);
  }
}

void EventWriter::write(std::stop_token stop, const EventRecord& record) {
  for (int tries = 0; tries < kWriteTriesMax && !stop.stop_requested(); ++tries) {
    auto write = aggregator_.write(record, clock_.now());
    if (!write) return;
    auto done =
        write->create ? client_.create(kEvent, write->body) : client_.patch(kEvent, write->key, PatchType::merge, write->body);
    if (done) return;
    aggregator_.forget(*write);
    Code code = done.error().code();
    if (!write->create && code == Code::not_found) continue;  // expired: create a new one
    if (code != Code::unavailable && code != Code::timeout && code != Code::too_many_requests) {
      return log_debug("event", "not written: " + done.error().text(), {{"about", record.about.name}});
    }
    queue_.wait_until(
        stop, std::chrono::steady_clock::now() + kWriteRetry, [](const auto&) { return false; }, [](auto&) {});
  }
}

}  // namespace coracle
