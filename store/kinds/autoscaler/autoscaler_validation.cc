// SPDX-License-Identifier: Apache-2.0
// Validation of HorizontalPodAutoscalers: bounds, metrics with the source of their type, scaling rules. Source: autoscaling/v2
// API reference, HorizontalPodAutoscaler.
#include <algorithm>

#include "runtime/base/text.h"
#include "store/kinds/autoscaler/autoscaler_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/validate/resource.h"
#include "store/schema/validate/syntax.h"

namespace coracle::schema {
namespace {

constexpr int64_t kPeriodSecondsMax = 1800, kWindowSecondsMax = 3600;

void check_reference(const json::value& reference, const std::string& path, Findings& out) {
  for (std::string_view name : {"kind", "name"}) {
    out.invalid_all(sub(path, name), get_string(reference, name), path_segment_problems(get_string(reference, name)));
  }
}

void check_autoscaler_spec(const json::value& spec, const std::string& path, Findings& out) {
  int64_t most = get_int(spec, "maxReplicas"), least = get_int(spec, "minReplicas");
  bool has_least = find(spec, "minReplicas");
  if (has_least && least < 1) out.invalid(sub(path, "minReplicas"), least, "must be greater than or equal to 1");
  if (most < 1) out.invalid(sub(path, "maxReplicas"), most, "must be greater than 0");
  if (has_least && most < least) out.invalid(sub(path, "maxReplicas"), most, "must be greater than or equal to `minReplicas`");
}

void check_target(const json::value& target, const std::string& path, Findings& out) {
  std::string_view type = get_string(target, "type");
  if (type.empty()) out.required(sub(path, "type"), "must specify a metric target type");
  if (type != "Utilization" && type != "Value" && type != "AverageValue") {
    out.invalid(sub(path, "type"), type, "must be either Utilization, Value, or AverageValue");
  }
  for (std::string_view name : {"value", "averageValue"}) {
    const json::value* given = find(target, name);
    auto amount = given ? Quantity::from_json(*given) : Quantity();
    if (given && amount && (amount->is_zero() || amount->negative()))
      out.invalid(sub(path, name), amount->text(), "must be positive");
  }
  if (find(target, "averageUtilization") && get_int(target, "averageUtilization") < 1) {
    out.invalid(sub(path, "averageUtilization"), get_int(target, "averageUtilization"), "must be greater than 0");
  }
}

void check_metric_identifier(const json::value& metric, const std::string& path, Findings& out) {
  std::string_view name = get_string(metric, "name");
  if (name.empty()) out.required(sub(path, "name"), "must specify a metric name");
  out.invalid_all(sub(path, "name"), name, path_segment_problems(name));
}

bool aims_at(const json::value& source, std::string_view what) { return find_keys(source, {"target", what}) != nullptr; }

void check_object_source(const json::value& source, const std::string& path, Findings& out) {
  if (!aims_at(source, "value") && !aims_at(source, "averageValue")) {
    out.required(sub(path, "target.averageValue"), "must set either a target value or averageValue");
  }
}

void check_external_source(const json::value& source, const std::string& path, Findings& out) {
  bool value = aims_at(source, "value"), average = aims_at(source, "averageValue");
  if (!value && !average) {
    out.required(sub(path, "target.averageValue"), "must set either a target value for metric or a per-pod target");
  }
  if (value && average)
    out.forbidden(sub(path, "target.value"), "may not set both a target value for metric and a per-pod target");
}

void check_pods_source(const json::value& source, const std::string& path, Findings& out) {
  if (!aims_at(source, "averageValue"))
    out.required(sub(path, "target.averageValue"), "must specify a positive target averageValue");
}

void check_resource_source(const json::value& source, const std::string& path, Findings& out) {
  if (get_string(source, "name").empty()) out.required(sub(path, "name"), "must specify a resource name");
  bool utilization = aims_at(source, "averageUtilization"), average = aims_at(source, "averageValue");
  if (!utilization && !average) {
    out.required(sub(path, "target.averageUtilization"), "must set either a target raw value or a target utilization");
  }
  if (utilization && average) {
    out.forbidden(sub(path, "target.averageValue"), "may not set both a target raw value and a target utilization");
  }
}

void check_container_source(const json::value& source, const std::string& path, Findings& out) {
  std::string_view name = get_string(source, "name"), container = get_string(source, "container");
  if (!name.empty()) check_container_resource_name(out, sub(path, "name"), name);
  if (container.empty()) out.required(sub(path, "container"), "must specify a container");
  else out.invalid_all(sub(path, "container"), container, dns_label_problems(container));
  check_resource_source(source, path, out);
}

void check_metric(const json::value& metric, const std::string& path, Findings& out) {
  static constexpr std::pair<std::string_view, std::string_view> kSources[] = {{"ContainerResource", "containerResource"},
                                                                               {"External", "external"},
                                                                               {"Object", "object"},
                                                                               {"Pods", "pods"},
                                                                               {"Resource", "resource"}};
  std::string_view type = get_string(metric, "type");
  if (type.empty()) out.required(sub(path, "type"), "must specify a metric source type");
  auto named = std::find_if(std::begin(kSources), std::end(kSources), [&](auto& source) { return source.first == type; });
  if (named == std::end(kSources)) {
    out.not_supported(sub(path, "type"), type, {"ContainerResource", "External", "Object", "Pods", "Resource"});
    return;
  }
  if (!find(metric, named->second))
    out.required(sub(path, named->second), "must populate information for the given metric source");
  for (auto [other, field] : kSources) {
    if (other != type && find(metric, field)) out.forbidden(sub(path, field), "must populate the given metric source only");
  }
}

void check_scaling_rules(const json::value& rules, const std::string& path, Findings& out) {
  int64_t window = get_int(rules, "stabilizationWindowSeconds");
  std::string at = sub(path, "stabilizationWindowSeconds");
  if (window < 0) out.invalid(at, window, "must be greater than or equal to zero");
  if (window > kWindowSecondsMax) out.invalid(at, window, "must be less than or equal to " + std::to_string(kWindowSecondsMax));
  std::string_view chosen = get_string(rules, "selectPolicy");
  if (find(rules, "selectPolicy") && chosen != "Max" && chosen != "Min" && chosen != "Disabled") {
    out.not_supported(sub(path, "selectPolicy"), chosen, {"Disabled", "Max", "Min"});
  }
  if (get_array(rules, "policies").empty()) out.required(sub(path, "policies"), "must specify at least one Policy");
  const json::value* tolerance = find(rules, "tolerance");
  auto amount = tolerance ? Quantity::from_json(*tolerance) : Quantity();
  if (amount && amount->negative()) out.invalid(sub(path, "tolerance"), amount->text(), "must be greater than or equal to 0");
}

void check_scaling_policy(const json::value& policy, const std::string& path, Findings& out) {
  std::string_view type = get_string(policy, "type");
  if (type != "Pods" && type != "Percent") out.not_supported(sub(path, "type"), type, {"Percent", "Pods"});
  for (std::string_view name : {"value", "periodSeconds"}) {
    int64_t number = get_int(policy, name);
    if (number <= 0) out.invalid(sub(path, name), number, "must be greater than zero");
  }
  int64_t period = get_int(policy, "periodSeconds");
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
  for (std::string_view name : {"status.currentReplicas", "status.desiredReplicas"})
    out.not_negative(std::string(name), get_int(now, name));
}

}  // namespace coracle::schema
