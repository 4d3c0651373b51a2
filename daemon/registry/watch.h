// SPDX-License-Identifier: Apache-2.0
// A watch with selectors: filters the engine's events of all objects. An object that begins to match is reported as added, one
// that no longer matches as deleted. Source: Kubernetes API concepts ("Efficient detection of changes").
#pragma once

#include <optional>

#include "daemon/registry/fields.h"
#include "store/client/client.h"
#include "store/engine/event.h"

namespace coracle::registry {

// The event for this watch; nullopt if it is not affected. Pure.
std::optional<WatchEvent> seen_through(const Filter& filter, const engine::Event& event);

}  // namespace coracle::registry
