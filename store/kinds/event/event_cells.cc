// SPDX-License-Identifier: Apache-2.0
// Cells of events: time, source and count are in older or newer fields.
#include "runtime/base/text.h"
#include "store/kinds/event/event_kinds.h"
#include "store/schema/table.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

std::string_view first_time(view::Event event) {
  return event.first_timestamp().empty() ? event.event_time() : event.first_timestamp();
}

json::value first_seen(const CellInput& in) { return json::value(human_age(first_time(view::Event(in.object)), in.now)); }

json::value last_seen(const CellInput& in) {
  view::Event event(in.object);
  std::string_view time = event.series().last_observed_time();
  if (time.empty()) time = event.last_timestamp();
  if (time.empty()) time = first_time(event);
  return json::value(human_age(time, in.now));
}

json::value event_object(const CellInput& in) {
  view::ObjectReference about = view::Event(in.object).involved_object();
  return json::value(to_lower(about.kind()) + "/" + std::string(about.name()));
}

json::value event_source(const CellInput& in) {
  view::Event event(in.object);
  std::string_view who = event.source().component(), where = event.source().host();
  if (who.empty()) who = event.reporting_component();
  if (where.empty()) where = event.reporting_instance();
  std::string text(who);
  if (!where.empty()) text += ", " + std::string(where);
  return json::value(text);
}

json::value event_message(const CellInput& in) { return json::value(trim(view::Event(in.object).message())); }

json::value event_count(const CellInput& in) {
  view::Event event(in.object);
  int64_t times = event.series() ? event.series().count() : event.count();
  return json::value(std::to_string(times > 0 ? times : 1));
}

constexpr NamedCellRule kEventCells[] = {{"event.first_seen", first_seen}, {"event.last_seen", last_seen},
                                         {"event.object", event_object},   {"event.source", event_source},
                                         {"event.message", event_message}, {"event.count", event_count}};

}  // namespace

std::span<const NamedCellRule> event_cells() { return kEventCells; }

}  // namespace coracle::schema
