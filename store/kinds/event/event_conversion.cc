// SPDX-License-Identifier: Apache-2.0
// Events: events.k8s.io has other names for the same fields. Source: Kubernetes pkg/apis/events/v1/conversion.go.
#include <utility>

#include "store/kinds/event/event_kinds.h"

namespace coracle::schema {
namespace {

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    // events.k8s.io/v1            v1
    {"regarding", "involvedObject"},
    {"note", "message"},
    {"reportingController", "reportingComponent"},
    {"deprecatedSource", "source"},
    {"deprecatedFirstTimestamp", "firstTimestamp"},
    {"deprecatedLastTimestamp", "lastTimestamp"},
    {"deprecatedCount", "count"},
};

}  // namespace

void event_to_core(json::object& event) {
  for (auto [newer, older] : kNames) rename(event, newer, older);
}

void event_from_core(json::object& event) {
  for (auto [newer, older] : kNames) rename(event, older, newer);
}

}  // namespace coracle::schema
