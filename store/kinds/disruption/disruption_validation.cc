// SPDX-License-Identifier: Apache-2.0
// Validation of PodDisruptionBudgets. Source: policy/v1 API reference.
#include <utility>

#include "store/kinds/disruption/disruption_kinds.h"
#include "store/schema/validate/syntax.h"

namespace coracle::schema {
namespace {

void check_budget_spec(const json::value& spec, const std::string& path, Findings& out) {
  const json::value *least = find(spec, "minAvailable"), *most = find(spec, "maxUnavailable");
  if (least && most) {
    const json::value *selector = find(spec, "selector"), *policy = find(spec, "unhealthyPodEvictionPolicy");
    json::object shown{{"MinAvailable", *least},
                       {"Selector", selector ? *selector : json::value()},
                       {"MaxUnavailable", *most},
                       {"UnhealthyPodEvictionPolicy", policy ? *policy : json::value()}};
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
  for (std::string_view name : {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
    out.not_negative(sub("status", name), get_int(now, sub("status", name)));
  }
}

}  // namespace coracle::schema
