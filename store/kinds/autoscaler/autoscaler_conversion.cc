// SPDX-License-Identifier: Apache-2.0
// HorizontalPodAutoscalers: version 1 only has the pods' CPU use. All other metrics, their current values, the conditions and the
// behaviour are kept in annotations, as JSON. Invalid annotations are ignored. Source: Kubernetes
// pkg/apis/autoscaling/v1/conversion.go, pkg/apis/autoscaling/annotations.go.
#include <optional>
#include <string>

#include "store/kinds/autoscaler/autoscaler_defaults.h"
#include "store/kinds/autoscaler/autoscaler_kinds.h"
#include "store/schema/catalog.h"
#include "store/schema/decode.h"
#include "store/schema/members.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kMetricsAnnotation = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kCurrentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kConditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions";
constexpr std::string_view kBehaviorAnnotation = "autoscaling.alpha.kubernetes.io/behavior";

// Copies one field under another name, if it exists.
void copy(const json::object& from, std::string_view name, json::object& to, std::string_view as) {
  const json::value* found = from.if_contains(name);
  if (found && !found->is_null()) to[as] = *found;
}

const json::object& part(const json::object& parent, std::string_view name) {
  static const json::object nothing;
  const json::value* found = parent.if_contains(name);
  return found && found->is_object() ? found->get_object() : nothing;
}

bool is_cpu(const json::object& metric) {
  return text_at(metric, "type") == "Resource" && text_at(part(metric, "resource"), "name") == "cpu";
}

// Removes an annotation and parses it. Nothing if it is absent or not JSON of the expected form.
std::optional<json::value> take_annotation(json::object& object, std::string_view name) {
  json::object* metadata = object_at(object, "metadata");
  json::object* annotations = metadata ? object_at(*metadata, "annotations") : nullptr;
  auto found = annotations ? annotations->find(name) : json::object::iterator();
  if (!annotations || found == annotations->end()) return std::nullopt;
  std::string encoded = found->value().is_string() ? std::string(found->value().get_string()) : std::string();
  annotations->stable_erase(found);
  if (annotations->empty()) metadata->erase("annotations");
  auto value = parse_json(encoded);
  if (!value) return std::nullopt;
  return std::move(*value);
}

void annotate(json::object& object, std::string_view name, const json::value& value) {
  json::value& metadata = object["metadata"];
  if (!metadata.is_object()) metadata.emplace_object();
  json::value& annotations = metadata.get_object()["annotations"];
  if (!annotations.is_object()) annotations.emplace_object();
  annotations.get_object()[name] = to_text(value);
}

// ---- metrics: version 1 has flat fields, version 2 {metric, target or current} ----

// The types of metrics and the key of each type's fields.
constexpr std::pair<std::string_view, std::string_view> kMetricSources[] = {{"Object", "object"},
                                                                            {"Pods", "pods"},
                                                                            {"Resource", "resource"},
                                                                            {"ContainerResource", "containerResource"},
                                                                            {"External", "external"}};

std::string_view source_of(const json::object& metric) {
  for (auto [type, key] : kMetricSources) {
    if (text_at(metric, "type") == type) return key;
  }
  return {};
}

// The field names of a metric in version 1. `now`: for a status ("currentValue"), otherwise for a spec ("targetValue").
struct Names {
  std::string_view value, average, utilization;
};

Names names_of(std::string_view source, bool now) {
  if (source == "object") return {now ? "currentValue" : "targetValue", "averageValue", ""};
  return now ? Names{"currentValue", "currentAverageValue", "currentAverageUtilization"}
             : Names{"targetValue", "targetAverageValue", "targetAverageUtilization"};
}

bool is_resource(std::string_view source) { return source == "resource" || source == "containerResource"; }
std::string_view selector_name(std::string_view source) { return source == "external" ? "metricSelector" : "selector"; }

json::object flat_metric(const json::object& metric, bool now) {
  std::string_view source = source_of(metric);
  json::object out{{"type", text_at(metric, "type")}};
  if (source.empty()) return out;
  const json::object& rich = part(metric, source);
  const json::object& amount = part(rich, now ? "current" : "target");
  const json::object& identifier = part(rich, "metric");
  Names names = names_of(source, now);
  json::object flat;
  if (is_resource(source)) {
    copy(rich, "name", flat, "name");
    copy(amount, "averageUtilization", flat, names.utilization);
    copy(amount, "averageValue", flat, names.average);
    if (source == "containerResource") copy(rich, "container", flat, "container");
    if (now && !flat.contains(names.average)) flat[names.average] = "0";  // always present in version 1
    out[source] = std::move(flat);
    return out;
  }
  if (source == "object") copy(rich, "describedObject", flat, "target");
  copy(identifier, "name", flat, "metricName");
  if (source == "external") copy(identifier, "selector", flat, selector_name(source));
  if (source != "pods") copy(amount, "value", flat, names.value);
  bool always = source == "object" || (source == "external" && now);
  if (always && !flat.contains(names.value)) flat[names.value] = "0";
  if (source == "object") copy(identifier, "selector", flat, selector_name(source));
  copy(amount, "averageValue", flat, names.average);
  if (source == "pods" && !flat.contains(names.average)) flat[names.average] = "0";
  if (source == "pods") copy(identifier, "selector", flat, selector_name(source));
  out[source] = std::move(flat);
  return out;
}

std::string_view target_type(std::string_view source, const json::object& amount) {
  if (is_resource(source)) return amount.contains("averageUtilization") ? "Utilization" : "AverageValue";
  if (source == "object") return amount.contains("averageValue") ? "AverageValue" : "Value";
  return amount.contains("value") ? "Value" : "AverageValue";
}

json::object rich_metric(const json::object& metric, bool now) {
  std::string_view source = source_of(metric);
  json::object out{{"type", text_at(metric, "type")}};
  if (source.empty()) return out;
  const json::object& flat = part(metric, source);
  Names names = names_of(source, now);
  json::object rich, amount;
  if (!is_resource(source) && source != "pods") copy(flat, names.value, amount, "value");
  copy(flat, names.average, amount, "averageValue");
  if (is_resource(source)) copy(flat, names.utilization, amount, "averageUtilization");
  bool filler = !now && source == "object" && amount.contains("averageValue") && text_at(amount, "value") == "0";
  if (filler) amount.erase("value");  // version 1 cannot leave it out
  if (!now) amount["type"] = target_type(source, amount);
  if (is_resource(source)) {
    copy(flat, "name", rich, "name");
    if (source == "containerResource") copy(flat, "container", rich, "container");
  } else {
    json::object identifier;
    copy(flat, "metricName", identifier, "name");
    copy(flat, selector_name(source), identifier, "selector");
    rich["metric"] = std::move(identifier);
    if (source == "object") copy(flat, "target", rich, "describedObject");
  }
  rich[now ? "current" : "target"] = std::move(amount);
  out[source] = std::move(rich);
  return out;
}

json::object cpu_metric(const json::value& percent, bool now) {
  json::object amount{{"averageUtilization", percent}};
  if (!now) amount["type"] = "Utilization";
  return {{"type", "Resource"}, {"resource", json::object{{"name", "cpu"}, {now ? "current" : "target", std::move(amount)}}}};
}

// ---- behaviour: the annotation has Go's field names ----

constexpr std::pair<std::string_view, std::string_view> kGoNames[] = {
    {"scaleUp", "ScaleUp"},
    {"scaleDown", "ScaleDown"},
    {"stabilizationWindowSeconds", "StabilizationWindowSeconds"},
    {"selectPolicy", "SelectPolicy"},
    {"policies", "Policies"},
    {"type", "Type"},
    {"value", "Value"},
    {"periodSeconds", "PeriodSeconds"},
    {"tolerance", "Tolerance"}};

json::value with_names(const json::value& value, bool go) {
  if (const json::array* items = value.if_array()) {
    json::array out;
    for (const json::value& item : *items) out.push_back(with_names(item, go));
    return out;
  }
  const json::object* object = value.if_object();
  if (!object) return value;
  json::object out;
  for (auto [ours, gos] : kGoNames) {  // in Go's order
    const json::value* found = object->if_contains(go ? ours : gos);
    if (found) out[go ? gos : ours] = with_names(*found, go);
  }
  return out;
}

// ---- reading annotations: values of the wrong type are ignored ----

std::optional<json::value> fitting(std::string_view type_name, json::value value) {
  const Type* type = type_named(type_name);
  if (!type) return std::nullopt;
  auto decoded = decode(*type, std::move(value));
  if (!decoded) return std::nullopt;
  return std::move(decoded->value);
}

template <typename Each>
std::optional<json::array> list_of(std::optional<json::value> list, std::string_view type, const Each& each) {
  if (!list || !list->is_array()) return std::nullopt;
  json::array out;
  for (const json::value& item : list->get_array()) {
    auto one = fitting(type, item.is_object() ? json::value(each(item.get_object())) : item);
    if (!one) return std::nullopt;
    out.push_back(std::move(*one));
  }
  return out;
}

json::object& part_of(json::object& object, std::string_view name) {
  json::value& found = object[name];
  if (!found.is_object()) found.emplace_object();
  return found.get_object();
}

json::value taken(json::object& object, std::string_view name) {
  json::value* found = object.if_contains(name);
  if (!found) return nullptr;
  json::value value = std::move(*found);
  object.erase(name);
  return value;
}

}  // namespace

void autoscaler_to_v2(json::object& autoscaler) {
  json::object& spec = part_of(autoscaler, "spec");
  json::array metrics;
  json::value target = taken(spec, "targetCPUUtilizationPercentage");
  auto others = list_of(take_annotation(autoscaler, kMetricsAnnotation), "io.k8s.api.autoscaling.v2.MetricSpec",
                        [](const json::object& metric) { return rich_metric(metric, false); });
  if (others) metrics = std::move(*others);
  if (!target.is_null()) metrics.push_back(cpu_metric(target, false));
  if (metrics.empty()) metrics.push_back(cpu_metric(kCpuUtilizationPercent, false));
  spec["metrics"] = std::move(metrics);
  auto behavior = take_annotation(autoscaler, kBehaviorAnnotation);
  if (behavior) behavior = fitting("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior", with_names(*behavior, false));
  if (behavior && !behavior->get_object().empty()) spec["behavior"] = std::move(*behavior);

  auto current = list_of(take_annotation(autoscaler, kCurrentMetricsAnnotation), "io.k8s.api.autoscaling.v2.MetricStatus",
                         [](const json::object& metric) { return rich_metric(metric, true); });
  auto conditions =
      list_of(take_annotation(autoscaler, kConditionsAnnotation), "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerCondition",
              [](const json::object& condition) { return condition; });
  json::object* status = object_at(autoscaler, "status");
  if (!status && !current && !conditions) return;
  json::object& rich = part_of(autoscaler, "status");
  json::value percent = taken(rich, "currentCPUUtilizationPercentage");
  if (current) rich["currentMetrics"] = std::move(*current);
  else if (!percent.is_null()) rich["currentMetrics"] = json::array{cpu_metric(percent, true)};
  if (conditions) rich["conditions"] = std::move(*conditions);
}

void autoscaler_from_v2(json::object& autoscaler) {
  for (std::string_view name : {kMetricsAnnotation, kCurrentMetricsAnnotation, kConditionsAnnotation, kBehaviorAnnotation})
    (void)take_annotation(autoscaler, name);
  json::array others, current;
  json::object& spec = part_of(autoscaler, "spec");
  json::value metrics = taken(spec, "metrics");
  bool first = true;
  for (const json::value& metric : metrics.is_array() ? metrics.get_array() : json::array()) {
    if (!metric.is_object()) continue;
    const json::value* percent = is_cpu(metric.get_object())
                                     ? part(part(metric.get_object(), "resource"), "target").if_contains("averageUtilization")
                                     : nullptr;
    if (percent && first) spec["targetCPUUtilizationPercentage"] = *percent;
    if (is_cpu(metric.get_object())) first = false;
    if (!percent) others.push_back(flat_metric(metric.get_object(), false));
  }
  if (!others.empty()) annotate(autoscaler, kMetricsAnnotation, others);
  json::value behavior = taken(spec, "behavior");
  if (behavior.is_object()) annotate(autoscaler, kBehaviorAnnotation, with_names(behavior, true));

  json::object* status = object_at(autoscaler, "status");
  if (!status) return;
  json::value statuses = taken(*status, "currentMetrics"), conditions = taken(*status, "conditions");
  for (const json::value& metric : statuses.is_array() ? statuses.get_array() : json::array()) {
    if (!metric.is_object()) continue;
    const json::object& amount = part(part(metric.get_object(), "resource"), "current");
    if (is_cpu(metric.get_object())) copy(amount, "averageUtilization", *status, "currentCPUUtilizationPercentage");
    current.push_back(flat_metric(metric.get_object(), true));
  }
  if (!current.empty()) annotate(autoscaler, kCurrentMetricsAnnotation, current);
  bool some = conditions.is_array() && !conditions.get_array().empty();
  if (some) annotate(autoscaler, kConditionsAnnotation, conditions);
}

}  // namespace coracle::schema
