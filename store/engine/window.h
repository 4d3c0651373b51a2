// SPDX-License-Identifier: Apache-2.0
// Window: the recent events, oldest first, within limits. From it a watch goes on from an older revision, and a list shows
// the state as it was. Not thread-safe: it lies under the engine's lock.
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

  void start(Revision revision) { floor_ = revision; }  // nothing before it is known
  void append(const Event& event);
  void forget(Revision upto);
  void shrink(size_t bytes);  // to so much: the oldest go

  Revision floor() const { return floor_; }  // every event after this revision is here
  // The events after `revision` (>= floor) of one kind and namespace ("" = all).
  std::vector<RestingEvent> after(Revision revision, const Kind& kind, const std::string& ns) const;
  // How the state at `revision` (>= floor) differs from the latest: the objects as they were, null where there was none.
  std::map<Key, RestingPtr> differences(Revision revision, const Kind& kind, const std::string& ns) const;

 private:
  void drop_oldest();
  std::deque<RestingEvent> events_;
  size_t bytes_ = 0;  // of what only the window keeps
  size_t events_max_, bytes_max_;
  Revision floor_ = 0;
};

}  // namespace coracle::engine
