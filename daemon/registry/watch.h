// SPDX-License-Identifier: Apache-2.0
// A watch with selectors: what the engine tells about all objects, seen by somebody who cares for some. An object that
// begins to match is added, one that ceases to is deleted. Source: Kubernetes API concepts ("Efficient detection of changes").
#pragma once

#include <optional>

#include "daemon/registry/fields.h"
#include "store/client/client.h"
#include "store/engine/event.h"

namespace coracle::registry {

// Nothing: this watcher is not concerned. Pure.
std::optional<WatchEvent> seen_through(const Filter& filter, const engine::Event& event);

}  // namespace coracle::registry
