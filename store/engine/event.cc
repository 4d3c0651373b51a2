// SPDX-License-Identifier: Apache-2.0
// See event.h.
#include "store/engine/event.h"

#include "store/object/object.h"

namespace coracle::engine {

RestingEvent at_rest(const Event& event) {
  auto rest = [](const ObjectPtr& object) { return object ? object->at_rest() : nullptr; };
  return {event.type, event.revision, rest(event.object), rest(event.before)};
}

Event awake(const RestingEvent& event) {
  auto wake = [](const RestingPtr& object) { return object ? object->awake() : nullptr; };
  return {event.type, event.revision, wake(event.object), wake(event.before)};
}

}  // namespace coracle::engine
