// SPDX-License-Identifier: Apache-2.0
// See flow.h.
#include "daemon/api/flow.h"

#include <algorithm>
#include <utility>

#include "daemon/flowcontrol/seats.h"
#include "daemon/registry/fields.h"
#include "runtime/base/text.h"

namespace coracle::api {
namespace {

using flowcontrol::FlowController;
using Count = FlowController::Count;
using FlowCount = FlowController::FlowCount;

// Whether a list reads the current objects in memory. Continued pages and lists of an earlier revision are collected first.
bool is_from_memory(const Query& query) {
  if (!query.get("continue").empty()) return false;
  std::string_view revision = query.get("resourceVersion"), match = query.get("resourceVersionMatch");
  if (match == "Exact") return false;
  return !match.empty() || query.get("limit").empty() || revision.empty() || revision == "0";
}

std::string level_label(const Count& level) { return "priority_level=\"" + level.level + "\""; }
std::string flow_labels(const Count& level, const std::string& schema) {
  return "flow_schema=\"" + schema + "\"," + level_label(level);
}

void write_levels(std::string& text, const std::vector<Count>& levels, std::string_view name, double (*value)(const Count&)) {
  std::string whole = "apiserver_flowcontrol_" + std::string(name);
  write_type(text, whole, "gauge");
  for (const Count& level : levels) write_metric(text, whole, level_label(level), value(level));
}

void write_flows(std::string& text, const std::vector<Count>& levels, std::string_view name, std::string_view type,
                 double (*value)(const FlowCount&)) {
  std::string whole = "apiserver_flowcontrol_" + std::string(name);
  write_type(text, whole, type);
  for (const Count& level : levels)
    for (const auto& [schema, flow] : level.schemas) write_metric(text, whole, flow_labels(level, schema), value(flow));
}

}  // namespace

int seats_wanted(const Call& call, const auth::Attributes& attributes) {
  if (call.flow->exempt() || !attributes.is_resource || !attributes.subresource.empty()) return 1;
  const Query& query = call.query();
  if (attributes.verb == "watch") {
    std::string_view revision = query.get("resourceVersion");
    bool from_the_start = query.flag("sendInitialEvents") || revision.empty() || revision == "0";
    if (!from_the_start) return 1;
  } else if (attributes.verb != "list") {
    return 1;
  }
  const schema::KindInfo* info = call.catalog->by_resource(attributes.group, call.route.version, attributes.resource);
  if (!info) return 1;
  flowcontrol::ListWork work;
  work.stored = int64_t(call.context.registry.engine().count(info->stored().kind));
  work.limit = parse_number<int64_t>(query.get("limit")).value_or(0);
  work.one_object = !attributes.name.empty() || !registry::name_demanded(std::string(query.get("fieldSelector"))).empty();
  work.from_memory = attributes.verb == "watch" || is_from_memory(query);
  work.selects = !query.get("fieldSelector").empty() || !query.get("labelSelector").empty();
  return flowcontrol::seats_of_list(work, call.context.flow_controller.seats_max(*call.flow));
}

void write_flow_metrics(std::string& text, const FlowController& flow_controller) {
  std::vector<Count> levels = flow_controller.counts();
  write_levels(text, levels, "nominal_limit_seats", [](const Count& c) { return double(c.limits.nominal); });
  write_levels(text, levels, "lower_limit_seats", [](const Count& c) { return double(c.limits.lower); });
  write_levels(text, levels, "upper_limit_seats", [](const Count& c) { return double(c.limits.upper); });
  write_levels(text, levels, "current_limit_seats", [](const Count& c) { return double(c.current_limit); });
  write_levels(text, levels, "demand_seats_high_watermark", [](const Count& c) { return double(c.demand_high_watermark); });
  write_levels(text, levels, "demand_seats_average", [](const Count& c) { return c.demand_average; });
  write_levels(text, levels, "demand_seats_stdev", [](const Count& c) { return c.demand_deviation; });
  write_levels(text, levels, "demand_seats_smoothed", [](const Count& c) { return c.demand_smoothed; });
  write_levels(text, levels, "target_seats", [](const Count& c) { return c.target; });
  write_type(text, "apiserver_flowcontrol_seat_fair_frac", "gauge");
  write_metric(text, "apiserver_flowcontrol_seat_fair_frac", "", flow_controller.fair_fraction());
  write_flows(text, levels, "current_executing_requests", "gauge", [](const FlowCount& c) { return double(c.executing); });
  write_flows(text, levels, "current_executing_seats", "gauge", [](const FlowCount& c) { return double(c.executing_seats); });
  write_flows(text, levels, "current_inqueue_requests", "gauge", [](const FlowCount& c) { return double(c.waiting); });
  write_flows(text, levels, "current_inqueue_seats", "gauge", [](const FlowCount& c) { return double(c.waiting_seats); });
  write_flows(text, levels, "dispatched_requests_total", "counter", [](const FlowCount& c) { return double(c.dispatched); });
  write_type(text, "apiserver_flowcontrol_rejected_requests_total", "counter");
  for (const Count& level : levels)
    for (const auto& [schema, flow] : level.schemas)
      for (const auto& [reason, count] : flow.rejected)
        write_metric(text, "apiserver_flowcontrol_rejected_requests_total",
                     flow_labels(level, schema) + ",reason=\"" + reason + "\"", double(count));
  write_type(text, "apiserver_flowcontrol_request_wait_duration_seconds", "histogram");
  for (const Count& level : levels) {
    for (const auto& [schema, flow] : level.schemas) {
      for (const auto& [execute, waits] : {std::pair("true", &flow.waited), std::pair("false", &flow.refused)}) {
        bool any = std::any_of(waits->buckets.begin(), waits->buckets.end(), [](uint64_t count) { return count > 0; });
        if (!any) continue;
        std::string labels = "execute=\"" + std::string(execute) + "\"," + flow_labels(level, schema);
        write_histogram(text, "apiserver_flowcontrol_request_wait_duration_seconds", labels, FlowController::kWaitBounds,
                        waits->buckets, waits->seconds);
      }
    }
  }
}

}  // namespace coracle::api
