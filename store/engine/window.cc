// SPDX-License-Identifier: Apache-2.0
// Window. See window.h.
#include "store/engine/window.h"

#include <algorithm>

#include "store/object/object.h"

namespace coracle::engine {
namespace {

// The size of objects that only the window keeps alive.
size_t weight(const RestingEvent& event) {
  size_t bytes = sizeof(RestingEvent);
  if (event.before) bytes += event.before->memory_size();
  if (event.type == EventType::deleted) bytes += event.object->memory_size();
  return bytes;
}

bool concerns(const RestingEvent& event, const Kind& kind, const std::string& ns) {
  return event.object->kind() == kind && (ns.empty() || event.object->ns() == ns);
}

}  // namespace

void Window::append(const Event& event) {
  RestingEvent kept = at_rest(event);
  bytes_ += weight(kept);
  events_.push_back(std::move(kept));
  while (events_.size() > events_max_) drop_oldest();
  shrink(bytes_max_);
}

void Window::shrink(size_t bytes) {
  while (!events_.empty() && bytes_ > bytes) drop_oldest();
}

void Window::forget(Revision upto) {
  while (!events_.empty() && events_.front().revision <= upto) drop_oldest();
  floor_ = std::max(floor_, upto);
}

void Window::drop_oldest() {
  bytes_ -= weight(events_.front());
  floor_ = events_.front().revision;
  events_.pop_front();
}

std::vector<RestingEvent> Window::after(Revision revision, const Kind& kind, const std::string& ns) const {
  auto first = std::ranges::upper_bound(events_, revision, {}, &RestingEvent::revision);
  std::vector<RestingEvent> found;
  std::copy_if(first, events_.end(), std::back_inserter(found),
               [&](const RestingEvent& event) { return concerns(event, kind, ns); });
  return found;
}

std::map<Key, RestingPtr> Window::differences(Revision revision, const Kind& kind, const std::string& ns) const {
  auto first = std::ranges::upper_bound(events_, revision, {}, &RestingEvent::revision);
  std::map<Key, RestingPtr> before;
  for (auto event = first; event != events_.end(); ++event)
    if (concerns(*event, kind, ns)) before.emplace(event->object->key(), event->before);  // the first one has the oldest state
  return before;
}

}  // namespace coracle::engine
