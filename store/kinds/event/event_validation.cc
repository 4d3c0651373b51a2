// SPDX-License-Identifier: Apache-2.0
// Validation of events: requirements of both APIs, and additional ones of events.k8s.io, with the field names of the stored
// version. Source: Kubernetes 1.36, pkg/apis/core/validation/events.go.
#include "store/kinds/event/event_kinds.h"
#include "store/schema/validate/texts.h"

namespace coracle::schema {
namespace {

constexpr size_t kEventTextMax = 128, kMessageMax = 1024;

void check_length(Findings& out, const std::string& path, std::string_view text, size_t max) {
  if (text.size() > max) out.invalid(path, "", "can have at most " + std::to_string(max) + " characters");
}

void check_event(const json::value& value, const std::string&, Findings& out) {
  std::string_view ns = get_string(value, "metadata.namespace"), about = get_string(value, "involvedObject.namespace");
  constexpr std::string_view kElsewhere = "does not match event.namespace";
  if (!has(value, "eventTime")) {  // an event of the older form
    bool fits = about.empty() ? ns.empty() || ns == "default" : ns == about;
    if (!fits) out.invalid("involvedObject.namespace", about, kElsewhere);
    return;
  }
  if (about.empty() && ns != "default" && ns != "kube-system") out.invalid("involvedObject.namespace", about, kElsewhere);
  std::string_view component = get_string(value, "reportingComponent");
  if (component.empty()) out.required("reportingController");
  check_qualified(out, "reportingController", component);
  for (std::string_view field : {"reportingInstance", "action", "reason"}) {
    std::string_view text = get_string(value, field);
    if (text.empty()) out.required(std::string(field));
    check_length(out, std::string(field), text, kEventTextMax);
  }
  check_length(out, "message", get_string(value, "message"), kMessageMax);
}

void check_series(const json::value& event, Findings& out) {
  if (!has(event, "series")) return;
  if (get_int(event, "series.count") < 2) out.invalid("series.count", "", "should be at least 2");
  if (!has(event, "series.lastObservedTime")) out.required("series.lastObservedTime");
}

constexpr NamedValidationRule kEventChecks[] = {{"io.k8s.api.core.v1.Event", check_event}};

}  // namespace

std::span<const NamedValidationRule> event_rules() { return kEventChecks; }

void check_newer_event(const json::value& event, Findings& out) {
  check_series(event, out);
  if (!has(event, "eventTime")) out.required("eventTime");
  std::string_view type = get_string(event, "type");
  if (type != "Normal" && type != "Warning") out.invalid("type", "", "has invalid value: " + std::string(type));
  for (std::string_view field : {"firstTimestamp", "lastTimestamp"}) {
    if (has(event, field)) out.invalid(std::string(field), "", "needs to be unset");
  }
  if (get_int(event, "count") != 0) out.invalid("count", "", "needs to be unset");
  bool source = !get_string(event, "source.component").empty() || !get_string(event, "source.host").empty();
  if (source) out.invalid("source", "", "needs to be unset");
}

void check_newer_event_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  const json::value* series = find(now, "series");
  const json::value* was = find(before, "series");
  bool same = series && was ? *series == *was : series == was;
  if (!same) check_series(now, out);
  for (std::string_view field : {"involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count",
                                 "type", "eventTime", "action", "related"}) {
    check_immutable(out, std::string(field), find(now, field), find(before, field));
  }
  check_immutable(out, "reportingController", find(now, "reportingComponent"), find(before, "reportingComponent"));
  check_immutable(out, "reportingInstance", find(now, "reportingInstance"), find(before, "reportingInstance"));
}

}  // namespace coracle::schema
