// SPDX-License-Identifier: Apache-2.0
// Validation of HorizontalPodAutoscalers: bounds, metrics with the source of their type, scaling rules. Source: autoscaling/v2
// API reference, HorizontalPodAutoscaler.
#include <algorithm>
#include <utility>

#include "runtime/base/text.h"
#include "store/kinds/autoscaler/autoscaler_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/validate/resource.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr int64_t kPeriodSecondsMax = 1800, kWindowSecondsMax = 3600;

void check_reference(const json::value& value, const std::string& path, Findings& out) {
  view::CrossVersionObjectReference reference(value);
  out.invalid_all(sub(path, "kind"), reference.kind(), path_segment_problems(reference.kind()));
  out.invalid_all(sub(path, "name"), reference.name(), path_segment_problems(reference.name()));
}

void check_autoscaler_spec(const json::value& value, const std::string& path, Findings& out) {
  view::HorizontalPodAutoscalerSpec spec(value);
  int64_t most = spec.max_replicas(), least = spec.min_replicas();
  bool has_least = spec.has_min_replicas();
  if (has_least && least < 1) out.invalid(sub(path, "minReplicas"), least, "must be greater than or equal to 1");
  if (most < 1) out.invalid(sub(path, "maxReplicas"), most, "must be greater than 0");
  if (has_least && most < least) out.invalid(sub(path, "maxReplicas"), most, "must be greater than or equal to `minReplicas`");
}

void check_target(const json::value& value, const std::string& path, Findings& out) {
  view::MetricTarget target(value);
  std::string_view type = target.type();
  if (type.empty()) out.required(sub(path, "type"), "must specify a metric target type");
  if (type != "Utilization" && type != "Value" && type != "AverageValue") {
    out.invalid(sub(path, "type"), type, "must be either Utilization, Value, or AverageValue");
  }
  for (auto [name, given] : {std::pair("value", target.value()), std::pair("averageValue", target.average_value())}) {
    auto amount = given ? Quantity::from_json(*given) : Quantity();
    if (given && amount && (amount->is_zero() || amount->negative()))
      out.invalid(sub(path, name), amount->text(), "must be positive");
  }
  if (target.has_average_utilization() && target.average_utilization() < 1)
    out.invalid(sub(path, "averageUtilization"), target.average_utilization(), "must be greater than 0");
}

void check_metric_identifier(const json::value& metric, const std::string& path, Findings& out) {
  std::string_view name = view::MetricIdentifier(metric).name();
  if (name.empty()) out.required(sub(path, "name"), "must specify a metric name");
  out.invalid_all(sub(path, "name"), name, path_segment_problems(name));
}

void check_object_source(const json::value& source, const std::string& path, Findings& out) {
  view::MetricTarget target = view::ObjectMetricSource(source).target();
  if (!target.has_value() && !target.has_average_value()) {
    out.required(sub(path, "target.averageValue"), "must set either a target value or averageValue");
  }
}

void check_external_source(const json::value& source, const std::string& path, Findings& out) {
  view::MetricTarget target = view::ExternalMetricSource(source).target();
  bool value = target.has_value(), average = target.has_average_value();
  if (!value && !average) {
    out.required(sub(path, "target.averageValue"), "must set either a target value for metric or a per-pod target");
  }
  if (value && average)
    out.forbidden(sub(path, "target.value"), "may not set both a target value for metric and a per-pod target");
}

void check_pods_source(const json::value& source, const std::string& path, Findings& out) {
  if (!view::PodsMetricSource(source).target().has_average_value())
    out.required(sub(path, "target.averageValue"), "must specify a positive target averageValue");
}

void check_resource_source(const json::value& value, const std::string& path, Findings& out) {
  view::ResourceMetricSource source(value);
  if (source.name().empty()) out.required(sub(path, "name"), "must specify a resource name");
  bool utilization = source.target().has_average_utilization(), average = source.target().has_average_value();
  if (!utilization && !average) {
    out.required(sub(path, "target.averageUtilization"), "must set either a target raw value or a target utilization");
  }
  if (utilization && average) {
    out.forbidden(sub(path, "target.averageValue"), "may not set both a target raw value and a target utilization");
  }
}

void check_container_source(const json::value& value, const std::string& path, Findings& out) {
  view::ContainerResourceMetricSource source(value);
  std::string_view name = source.name(), container = source.container();
  if (!name.empty()) check_container_resource_name(out, sub(path, "name"), name);
  if (container.empty()) out.required(sub(path, "container"), "must specify a container");
  else out.invalid_all(sub(path, "container"), container, dns_label_problems(container));
  check_resource_source(value, path, out);  // has the same fields
}

void check_metric(const json::value& value, const std::string& path, Findings& out) {
  view::MetricSpec metric(value);
  struct Source {
    std::string_view type, field;
    bool given;
  };
  const Source sources[] = {{"ContainerResource", "containerResource", metric.has_container_resource()},
                            {"External", "external", metric.has_external()},
                            {"Object", "object", metric.has_object()},
                            {"Pods", "pods", metric.has_pods()},
                            {"Resource", "resource", metric.has_resource()}};
  std::string_view type = metric.type();
  if (type.empty()) out.required(sub(path, "type"), "must specify a metric source type");
  auto named = std::find_if(std::begin(sources), std::end(sources), [&](auto& source) { return source.type == type; });
  if (named == std::end(sources)) {
    out.not_supported(sub(path, "type"), type, {"ContainerResource", "External", "Object", "Pods", "Resource"});
    return;
  }
  if (!named->given) out.required(sub(path, named->field), "must populate information for the given metric source");
  for (const Source& other : sources) {
    if (other.type != type && other.given) out.forbidden(sub(path, other.field), "must populate the given metric source only");
  }
}

void check_scaling_rules(const json::value& value, const std::string& path, Findings& out) {
  view::HPAScalingRules rules(value);
  int64_t window = rules.stabilization_window_seconds();
  std::string at = sub(path, "stabilizationWindowSeconds");
  if (window < 0) out.invalid(at, window, "must be greater than or equal to zero");
  if (window > kWindowSecondsMax) out.invalid(at, window, "must be less than or equal to " + std::to_string(kWindowSecondsMax));
  std::string_view chosen = rules.select_policy();
  if (rules.has_select_policy() && chosen != "Max" && chosen != "Min" && chosen != "Disabled") {
    out.not_supported(sub(path, "selectPolicy"), chosen, {"Disabled", "Max", "Min"});
  }
  if (rules.policies().empty()) out.required(sub(path, "policies"), "must specify at least one Policy");
  auto amount = rules.tolerance() ? Quantity::from_json(*rules.tolerance()) : Quantity();
  if (amount && amount->negative()) out.invalid(sub(path, "tolerance"), amount->text(), "must be greater than or equal to 0");
}

void check_scaling_policy(const json::value& value, const std::string& path, Findings& out) {
  view::HPAScalingPolicy policy(value);
  std::string_view type = policy.type();
  if (type != "Pods" && type != "Percent") out.not_supported(sub(path, "type"), type, {"Percent", "Pods"});
  int64_t period = policy.period_seconds();
  for (auto [name, number] : {std::pair("value", policy.value()), std::pair("periodSeconds", period)})
    if (number <= 0) out.invalid(sub(path, name), number, "must be greater than zero");
  if (period > kPeriodSecondsMax) {
    out.invalid(sub(path, "periodSeconds"), period, "must be less than or equal to " + std::to_string(kPeriodSecondsMax));
  }
}

constexpr NamedValidationRule kAutoscalerChecks[] = {
    {"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", check_autoscaler_spec},
    {"io.k8s.api.autoscaling.v2.CrossVersionObjectReference", check_reference},
    {"io.k8s.api.autoscaling.v2.MetricSpec", check_metric},
    {"io.k8s.api.autoscaling.v2.MetricTarget", check_target},
    {"io.k8s.api.autoscaling.v2.MetricIdentifier", check_metric_identifier},
    {"io.k8s.api.autoscaling.v2.ObjectMetricSource", check_object_source},
    {"io.k8s.api.autoscaling.v2.ExternalMetricSource", check_external_source},
    {"io.k8s.api.autoscaling.v2.PodsMetricSource", check_pods_source},
    {"io.k8s.api.autoscaling.v2.ResourceMetricSource", check_resource_source},
    {"io.k8s.api.autoscaling.v2.ContainerResourceMetricSource", check_container_source},
    {"io.k8s.api.autoscaling.v2.HPAScalingRules", check_scaling_rules},
    {"io.k8s.api.autoscaling.v2.HPAScalingPolicy", check_scaling_policy},
};

}  // namespace

std::span<const NamedValidationRule> autoscaler_rules() { return kAutoscalerChecks; }

void check_autoscaler_status(const json::value& now, const json::value&, Findings& out) {
  view::HorizontalPodAutoscalerStatus status = view::HorizontalPodAutoscaler(now).status();
  out.not_negative("status.currentReplicas", status.current_replicas());
  out.not_negative("status.desiredReplicas", status.desired_replicas());
}

}  // namespace coracle::schema
