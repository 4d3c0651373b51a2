// SPDX-License-Identifier: Apache-2.0
// Validation of events: requirements of both APIs, and additional ones of events.k8s.io, with the field names of the stored
// version. Source: Kubernetes 1.36, pkg/apis/core/validation/events.go.
#include "store/kinds/event/event_kinds.h"
#include "store/schema/validate/texts.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kEventTextMax = 128, kMessageMax = 1024;

void check_length(Findings& out, const std::string& path, std::string_view text, size_t max) {
  if (text.size() > max) out.invalid(path, "", "can have at most " + std::to_string(max) + " characters");
}

void check_event(const json::value& value, const std::string&, Findings& out) {
  view::Event event(value);
  std::string_view ns = event.metadata().namespace_(), about = event.involved_object().namespace_();
  constexpr std::string_view kElsewhere = "does not match event.namespace";
  if (!event.has_event_time()) {  // an event of the older form
    bool fits = about.empty() ? ns.empty() || ns == "default" : ns == about;
    if (!fits) out.invalid("involvedObject.namespace", about, kElsewhere);
    return;
  }
  if (about.empty() && ns != "default" && ns != "kube-system") out.invalid("involvedObject.namespace", about, kElsewhere);
  std::string_view component = event.reporting_component();
  if (component.empty()) out.required("reportingController");
  check_qualified(out, "reportingController", component);
  auto check_given = [&](const std::string& field, std::string_view text) {
    if (text.empty()) out.required(field);
    check_length(out, field, text, kEventTextMax);
  };
  check_given("reportingInstance", event.reporting_instance());
  check_given("action", event.action());
  check_given("reason", event.reason());
  check_length(out, "message", event.message(), kMessageMax);
}

void check_series(view::EventSeries series, Findings& out) {
  if (!series) return;
  if (series.count() < 2) out.invalid("series.count", "", "should be at least 2");
  if (!series.has_last_observed_time()) out.required("series.lastObservedTime");
}

constexpr NamedValidationRule kEventChecks[] = {{"io.k8s.api.core.v1.Event", check_event}};

}  // namespace

std::span<const NamedValidationRule> event_rules() { return kEventChecks; }

void check_newer_event(const json::value& value, Findings& out) {
  view::Event event(value);
  check_series(event.series(), out);
  if (!event.has_event_time()) out.required("eventTime");
  std::string_view type = event.type();
  if (type != "Normal" && type != "Warning") out.invalid("type", "", "has invalid value: " + std::string(type));
  if (event.has_first_timestamp()) out.invalid("firstTimestamp", "", "needs to be unset");
  if (event.has_last_timestamp()) out.invalid("lastTimestamp", "", "needs to be unset");
  if (event.count() != 0) out.invalid("count", "", "needs to be unset");
  bool source = !event.source().component().empty() || !event.source().host().empty();
  if (source) out.invalid("source", "", "needs to be unset");
}

void check_newer_event_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::Event event(now), old(before);
  if (!same_json(event.series().raw(), old.series().raw())) check_series(event.series(), out);
  for (std::string_view field : {"involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count",
                                 "type", "eventTime", "action", "related"}) {
    check_immutable(out, std::string(field), find(now, field), find(before, field));
  }
  check_immutable(out, "reportingController", event.reporting_component(), old.reporting_component());
  check_immutable(out, "reportingInstance", event.reporting_instance(), old.reporting_instance());
}

}  // namespace coracle::schema
