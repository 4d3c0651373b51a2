// SPDX-License-Identifier: Apache-2.0
// Validation of PriorityClasses, RuntimeClasses and PodDisruptionBudgets.
// Source: scheduling.k8s.io/v1, node.k8s.io/v1 and policy/v1 API reference.
#include <algorithm>
#include <set>

#include "store/schema/priority.h"
#include "store/schema/validate/resource.h"
#include "store/schema/validate/syntax.h"

namespace coracle::schema {
namespace {

constexpr int64_t kUserPriorityMax = 1'000'000'000;

void check_system_class(const json::value& object, std::string_view name, Findings& out) {
  auto known = std::find_if(std::begin(kSystemClasses), std::end(kSystemClasses), [&](auto& one) { return one.name == name; });
  std::string why;
  if (known == std::end(kSystemClasses)) why = std::string(name) + " is not a known system priority class";
  else if (get_int(object, "value") != known->value) {
    why = "value of " + std::string(name) + " PriorityClass must be " + std::to_string(known->value);
  } else if (get_bool(object, "globalDefault")) {
    why = "globalDefault of " + std::string(name) + " PriorityClass must be false";
  }
  if (why.empty()) return;
  out.forbidden("metadata.name", "priority class names with 'system-' prefix are reserved for system use only. error: " + why);
}

void check_priority_class(const json::value& object, const std::string&, Findings& out) {
  std::string_view name = get_string(object, "metadata.name");
  if (name.starts_with("system-")) return check_system_class(object, name, out);
  if (get_int(object, "value") > kUserPriorityMax)
    out.forbidden("value", "maximum allowed value of a user defined priority is 1000000000");
}

void check_runtime_class(const json::value& object, const std::string&, Findings& out) {
  std::string_view handler = get_string(object, "handler");
  out.invalid_all("handler", handler, dns_label_problems(handler));
}

void check_overhead(const json::value& overhead, const std::string& path, Findings& out) {
  check_container_resources(out, sub(path, "limits"), get_object(overhead, "podFixed"));
}

void check_scheduling(const json::value& scheduling, const std::string& path, Findings& out) {
  check_labels(out, sub(path, "nodeSelector"), get_object(scheduling, "nodeSelector"));
  const json::array& tolerations = get_array(scheduling, "tolerations");
  std::set<std::string> seen;  // canonical: equal values have equal text
  for (size_t i = 0; i < tolerations.size(); ++i) {
    if (!seen.insert(to_text(tolerations[i])).second) out.duplicate_json(item(sub(path, "tolerations"), i), tolerations[i]);
  }
}

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

constexpr NamedValidationRule kClassChecks[] = {
    {"io.k8s.api.scheduling.v1.PriorityClass", check_priority_class},
    {"io.k8s.api.node.v1.RuntimeClass", check_runtime_class},
    {"io.k8s.api.node.v1.Overhead", check_overhead},
    {"io.k8s.api.node.v1.Scheduling", check_scheduling},
    {"io.k8s.api.policy.v1.PodDisruptionBudgetSpec", check_budget_spec},
};

}  // namespace

std::span<const NamedValidationRule> class_rules() { return kClassChecks; }

void check_priority_class_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  if (get_int(now, "value") != get_int(before, "value")) out.forbidden("value", "may not be changed in an update.");
  check_immutable(out, "preemptionPolicy", find(now, "preemptionPolicy"), find(before, "preemptionPolicy"));
}

void check_runtime_class_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "handler", find(now, "handler"), find(before, "handler"));
}

void check_budget_status(const json::value& now, const json::value&, Findings& out) {
  for (std::string_view name : {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
    out.not_negative(sub("status", name), get_int(now, sub("status", name)));
  }
}

}  // namespace coracle::schema
