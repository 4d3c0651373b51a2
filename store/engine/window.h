// SPDX-License-Identifier: Apache-2.0
// Window: the recent events, oldest first, within limits. It allows watches to start from an older revision and lists at an older
// revision. Not thread-safe: the engine's lock guards it.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "store/engine/event.h"

namespace coracle::engine {

class Window {
 public:
  Window(size_t events_max, size_t bytes_max) : events_max_(events_max), bytes_max_(bytes_max) {}

  void start(Revision revision) { floor_ = revision; }  // no event before it is available
  void append(const Event& event);
  void forget(Revision upto);
  void shrink(size_t bytes);  // drops the oldest events to get below this size

  Revision floor() const { return floor_; }  // all events after this revision are available
  // The events after `revision` (>= floor) of one kind and namespace ("": all).
  std::vector<RestingEvent> after(Revision revision, const Kind& kind, const std::string& ns) const;
  // The differences of the state at `revision` (>= floor) from the latest: the old objects, null if they did not exist.
  std::map<Key, RestingPtr> differences(Revision revision, const Kind& kind, const std::string& ns) const;

 private:
  void drop_oldest();
  std::deque<RestingEvent, sys::SlabAllocator<RestingEvent>> events_;
  size_t bytes_ = 0;  // of objects that only the window keeps alive
  size_t events_max_, bytes_max_;
  Revision floor_ = 0;
};

}  // namespace coracle::engine
