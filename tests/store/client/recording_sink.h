// SPDX-License-Identifier: Apache-2.0
// RecordingSink: records the events of a watch, and lets a test wait for them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/guarded.h"
#include "store/client/client.h"
#include "store/object/object.h"

namespace coracle {

using Names = std::vector<std::string>;

class RecordingSink : public WatchSink {
 public:
  void on_event(const WatchEvent& event) override {
    if (event.type == EventType::bookmark) return;
    record_.with([&](Record& record) { record.events.push_back(event); });
    record_.notify();
  }
  void on_end(const Error& why) override {
    record_.with([&](Record& record) { record.end = why; });
    record_.notify();
  }
  // The first `count` events; fewer if they do not arrive.
  std::vector<WatchEvent> wait(size_t count) {
    return record_.wait_until(
        {}, deadline(), [&](const Record& record) { return record.events.size() >= count; },
        [](const Record& record) { return record.events; });
  }
  std::optional<Error> wait_end() {
    return record_.wait_until(
        {}, deadline(), [](const Record& record) { return record.end.has_value(); },
        [](const Record& record) { return record.end; });
  }
  // The first `count` of "added a", "modified a", "deleted a", "synced".
  Names wait_names(size_t count) {
    Names names;
    for (const WatchEvent& event : wait(count)) names.push_back(name_of(event));
    return names;
  }

 private:
  struct Record {
    std::vector<WatchEvent> events;
    std::optional<Error> end;
  };
  static std::chrono::steady_clock::time_point deadline() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }
  static std::string name_of(const WatchEvent& event) {
    static constexpr const char* kNames[] = {"added", "modified", "deleted", "bookmark", "synced"};
    return kNames[size_t(event.type)] + (event.object ? " " + event.object->name() : "");
  }
  Guarded<Record> record_;
};

}  // namespace coracle
