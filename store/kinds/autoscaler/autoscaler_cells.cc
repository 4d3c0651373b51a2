// SPDX-License-Identifier: Apache-2.0
// Cells of autoscalers: their target, and each metric as <current>/<target>.
#include "runtime/base/text.h"
#include "store/kinds/autoscaler/autoscaler_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kMetricsShown = 2;
constexpr std::string_view kUnknown = "<unknown>";

json::value reference(const CellInput& in) {
  view::CrossVersionObjectReference target = view::HorizontalPodAutoscaler(in.object).spec().scale_target_ref();
  return json::value(std::string(target.kind()) + "/" + std::string(target.name()));
}

std::string quantity_text(const json::value* quantity, std::string_view absent) {
  if (!quantity) return std::string(absent);
  return quantity->is_string() ? std::string(quantity->get_string()) : to_text(*quantity);
}

// "current/target" of a metric that is a value, or an average per pod.
std::string values(view::MetricTarget target, view::MetricValueStatus current, bool measured, bool names_average) {
  bool average = target.has_average_value();
  const json::value* now = average ? current.average_value() : current.value();
  std::string text = measured ? quantity_text(now, average ? kUnknown : "0") : std::string(kUnknown);
  text += "/" + quantity_text(average ? target.average_value() : target.value(), "0");
  return average && names_average ? text + " (avg)" : text;
}

std::string resource(std::string_view name, view::MetricTarget target, view::MetricValueStatus current) {
  std::string text(name);
  text += ": ";
  if (target.has_average_value())
    return text + quantity_text(current.average_value(), kUnknown) + "/" + quantity_text(target.average_value(), "0");
  auto percent = [](bool given, int64_t number, std::string_view absent) {
    return given ? std::to_string(number) + "%" : std::string(absent);
  };
  return text + percent(current.has_average_utilization(), current.average_utilization(), kUnknown) + "/" +
         percent(target.has_average_utilization(), target.average_utilization(), "<auto>");
}

std::string one(view::MetricSpec spec, view::MetricStatus now) {
  if (spec.type() == "External") return values(spec.external().target(), now.external().current(), now.has_external(), true);
  if (spec.type() == "Object") return values(spec.object().target(), now.object().current(), now.has_object(), true);
  if (spec.type() == "Pods") return values(spec.pods().target(), now.pods().current(), now.has_pods(), false);
  if (spec.type() == "Resource") return resource(spec.resource().name(), spec.resource().target(), now.resource().current());
  if (spec.type() == "ContainerResource") {
    return resource(spec.container_resource().name(), spec.container_resource().target(), now.container_resource().current());
  }
  return "<unknown type>";
}

json::value targets(const CellInput& in) {
  view::HorizontalPodAutoscaler autoscaler(in.object);
  auto specs = autoscaler.spec().metrics();
  auto statuses = autoscaler.status().current_metrics();
  if (specs.empty()) return or_none({});
  std::vector<std::string> shown;
  for (size_t i = 0; i < specs.size() && i < kMetricsShown; ++i) {
    shown.push_back(one(specs[i], i < statuses.size() ? statuses[i] : view::MetricStatus()));
  }
  std::string text = join(shown, ", ");
  if (specs.size() > kMetricsShown) text += " + " + std::to_string(specs.size() - kMetricsShown) + " more...";
  return json::value(text);
}

constexpr NamedCellRule kAutoscalerCells[] = {{"autoscaler.reference", reference}, {"autoscaler.targets", targets}};

}  // namespace

std::span<const NamedCellRule> autoscaler_cells() { return kAutoscalerCells; }

}  // namespace coracle::schema
