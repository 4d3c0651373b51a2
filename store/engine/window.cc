// SPDX-License-Identifier: Apache-2.0
// Window. See window.h.
#include "store/engine/window.h"

#include <algorithm>

namespace coracle::engine {
namespace {

constexpr size_t kEventBytes = 200;   // of one in the window, with its views of objects at rest
constexpr size_t kObjectBytes = 400;  // of an object, its text aside: key, uid, and what the allocator adds

// Of what nobody else keeps.
size_t weight(const Event& event) {
  size_t bytes = kEventBytes;
  if (event.before) bytes += kObjectBytes + event.before->text().size();
  if (event.type == EventType::deleted) bytes += kObjectBytes + event.object->text().size();
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
