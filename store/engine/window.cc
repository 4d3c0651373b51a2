// SPDX-License-Identifier: Apache-2.0
// Window. See window.h.
#include "store/engine/window.h"

#include <algorithm>

namespace coracle::engine {
namespace {

size_t weight(const Event& event) {
  size_t bytes = sizeof(Event);
  if (event.before) bytes += event.before->text().size();
  if (event.type == EventType::deleted) bytes += event.object->text().size();
  return bytes;
}

bool concerns(const Event& event, const Kind& kind, const std::string& ns) {
  return event.object->kind() == kind && (ns.empty() || event.object->ns() == ns);
}

}  // namespace

void Window::append(const Event& event) {
  Event kept = event;
  kept.object = event.object->at_rest();
  if (event.before) kept.before = event.before->at_rest();
  bytes_ += weight(kept);
  events_.push_back(std::move(kept));
  while (!events_.empty() && (events_.size() > events_max_ || bytes_ > bytes_max_)) drop_oldest();
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

std::vector<Event> Window::after(Revision revision, const Kind& kind, const std::string& ns) const {
  auto first = std::ranges::upper_bound(events_, revision, {}, &Event::revision);
  std::vector<Event> found;
  std::copy_if(first, events_.end(), std::back_inserter(found), [&](const Event& event) { return concerns(event, kind, ns); });
  return found;
}

std::map<Key, ObjectPtr> Window::differences(Revision revision, const Kind& kind, const std::string& ns) const {
  auto first = std::ranges::upper_bound(events_, revision, {}, &Event::revision);
  std::map<Key, ObjectPtr> before;
  for (auto event = first; event != events_.end(); ++event)
    if (concerns(*event, kind, ns)) before.emplace(event->object->key(), event->before);  // the first one counts
  return before;
}

}  // namespace coracle::engine
