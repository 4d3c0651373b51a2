// SPDX-License-Identifier: Apache-2.0
// See watch.h.
#include "daemon/registry/watch.h"

#include "daemon/registry/metadata.h"
#include "store/object/object.h"

namespace coracle::registry {
namespace {

// The previous state, with the revision at which it stopped matching.
ObjectPtr at_revision(const Object& object, Revision revision) {
  json::value body = object.json();
  make_metadata(body)["resourceVersion"] = std::to_string(revision);
  return MUST(Object::make(object.kind(), std::move(body)));
}

}  // namespace

std::optional<WatchEvent> seen_through(const Filter& filter, const engine::Event& event) {
  if (event.type == engine::EventType::synced) return WatchEvent{EventType::synced, nullptr, event.revision};
  bool matched = event.before && (!filter || filter(*event.before));
  bool matches = event.type != engine::EventType::deleted && (!filter || filter(*event.object));
  if (matches) return WatchEvent{matched ? EventType::modified : EventType::added, event.object, event.revision};
  if (!matched) return std::nullopt;
  if (event.type == engine::EventType::deleted) return WatchEvent{EventType::deleted, event.object, event.revision};
  return WatchEvent{EventType::deleted, at_revision(*event.before, event.revision), event.revision};
}

}  // namespace coracle::registry
