// SPDX-License-Identifier: Apache-2.0
// Event: one change of one object, as published by the engine.
#pragma once

#include <cstdint>

#include "runtime/base/units.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::engine {

enum class EventType : uint8_t {
  added,     // `object` is new; `before` is null
  modified,  // `object` replaces `before`
  deleted,   // `object` is the last state with the deletion's revision; `before` the same with its old one
  synced,    // no object: the initial events of a watch from 0 are complete; `revision` is that of the snapshot
};

struct Event {
  EventType type;
  Revision revision = 0;
  ObjectPtr object;
  ObjectPtr before;
};

// The same with objects at rest, for storing.
struct RestingEvent {
  EventType type;
  Revision revision = 0;
  RestingPtr object;
  RestingPtr before;
};

// The one from the other. A missing object stays null.
RestingEvent at_rest(const Event& event);
Event awake(const RestingEvent& event);

}  // namespace coracle::engine
