// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Events of both groups.
#include "store/kinds/event/event_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kEventKinds[] = {
    {.api_version = "events.k8s.io/v1", .resource = "events", .update = check_newer_event_update, .create = check_newer_event},
};
constexpr VersionConversion kEventConversions[] = {{"events.k8s.io/v1", "Event", event_to_core, event_from_core}};

}  // namespace

extern const KindFamily event_family;
const KindFamily event_family{
    .validation = {event_rules},
    .cells = {event_cells},
    .kinds = kEventKinds,
    .conversions = kEventConversions,
};

}  // namespace coracle::schema
