// SPDX-License-Identifier: Apache-2.0
// Validation of PodDisruptionBudgets. Source: policy/v1 API reference.
#include <utility>

#include "store/kinds/disruption/disruption_kinds.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

void check_budget_spec(const json::value& value, const std::string& path, Findings& out) {
  view::PodDisruptionBudgetSpec spec(value);
  const json::value *least = spec.min_available(), *most = spec.max_unavailable();
  if (least && most) {
    bool has_policy = spec.has_unhealthy_pod_eviction_policy();
    json::object shown{
        {"MinAvailable", *least},
        {"Selector", spec.selector().raw()},
        {"MaxUnavailable", *most},
        {"UnhealthyPodEvictionPolicy", has_policy ? json::value(spec.unhealthy_pod_eviction_policy()) : json::value()}};
    out.invalid_json(path, json::value(std::move(shown)), "minAvailable and maxUnavailable cannot be both set");
  }
  for (auto [name, amount] : {std::pair{"minAvailable", least}, std::pair{"maxUnavailable", most}}) {
    check_amount(out, sub(path, name), amount);
    check_at_most_all(out, sub(path, name), amount);
  }
}

constexpr NamedValidationRule kDisruptionChecks[] = {{"io.k8s.api.policy.v1.PodDisruptionBudgetSpec", check_budget_spec}};

}  // namespace

std::span<const NamedValidationRule> disruption_rules() { return kDisruptionChecks; }

void check_budget_status(const json::value& now, const json::value&, Findings& out) {
  view::PodDisruptionBudgetStatus status = view::PodDisruptionBudget(now).status();
  out.not_negative("status.disruptionsAllowed", status.disruptions_allowed());
  out.not_negative("status.currentHealthy", status.current_healthy());
  out.not_negative("status.desiredHealthy", status.desired_healthy());
  out.not_negative("status.expectedPods", status.expected_pods());
}

}  // namespace coracle::schema
