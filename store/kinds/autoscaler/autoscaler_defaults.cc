// SPDX-License-Identifier: Apache-2.0
// Defaults of HorizontalPodAutoscalers: 80 percent CPU if there is no metric, and the limits of each direction if there is a
// behaviour. Source: autoscaling/v2 API reference.
#include "store/kinds/autoscaler/autoscaler_defaults.h"

#include "store/kinds/autoscaler/autoscaler_kinds.h"

namespace coracle::schema {
namespace {

constexpr int64_t kPeriodSeconds = 15;

json::value policy(std::string_view type, int64_t value) {
  return json::object{{"type", type}, {"value", value}, {"periodSeconds", kPeriodSeconds}};
}

void fill_rules(json::object& behavior, std::string_view direction, json::array policies, bool waits) {
  json::value& value = behavior[direction];
  if (!value.is_object()) value.emplace_object();
  json::object& rules = value.get_object();
  if (unset(rules, "selectPolicy", true)) rules["selectPolicy"] = "Max";
  if (!waits && unset(rules, "stabilizationWindowSeconds", true)) rules["stabilizationWindowSeconds"] = 0;
  if (unset(rules, "policies", true)) rules["policies"] = std::move(policies);
}

void default_behavior(json::object& behavior) {
  fill_rules(behavior, "scaleUp", {policy("Pods", 4), policy("Percent", 100)}, false);
  fill_rules(behavior, "scaleDown", {policy("Percent", 100)}, true);
}

void default_autoscaler_spec(json::object& spec) {
  json::array* metrics = array_at(spec, "metrics");
  if (metrics && !metrics->empty()) return;
  json::object target{{"type", "Utilization"}, {"averageUtilization", kCpuUtilizationPercent}};
  json::object resource{{"name", "cpu"}, {"target", std::move(target)}};
  spec["metrics"] = json::array{json::object{{"type", "Resource"}, {"resource", std::move(resource)}}};
}

constexpr NamedDefaultRule kAutoscalerDefaults[] = {
    {"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", default_autoscaler_spec},
    {"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior", default_behavior},
};

}  // namespace

std::span<const NamedDefaultRule> autoscaler_defaults() { return kAutoscalerDefaults; }

}  // namespace coracle::schema
