// SPDX-License-Identifier: Apache-2.0
// Validation of PriorityClasses. Source: scheduling.k8s.io/v1 API reference.
#include <algorithm>

#include "store/kinds/priority_class/priority_class_kinds.h"
#include "store/schema/priority.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr int64_t kUserPriorityMax = 1'000'000'000;

void check_system_class(view::PriorityClass priority, Findings& out) {
  std::string_view name = priority.metadata().name();
  auto known = std::find_if(std::begin(kSystemClasses), std::end(kSystemClasses), [&](auto& one) { return one.name == name; });
  std::string why;
  if (known == std::end(kSystemClasses)) why = std::string(name) + " is not a known system priority class";
  else if (priority.value() != known->value) {
    why = "value of " + std::string(name) + " PriorityClass must be " + std::to_string(known->value);
  } else if (priority.global_default()) {
    why = "globalDefault of " + std::string(name) + " PriorityClass must be false";
  }
  if (why.empty()) return;
  out.forbidden("metadata.name", "priority class names with 'system-' prefix are reserved for system use only. error: " + why);
}

void check_priority_class(const json::value& object, const std::string&, Findings& out) {
  view::PriorityClass priority(object);
  if (priority.metadata().name().starts_with("system-")) return check_system_class(priority, out);
  if (priority.value() > kUserPriorityMax)
    out.forbidden("value", "maximum allowed value of a user defined priority is 1000000000");
}

constexpr NamedValidationRule kPriorityClassChecks[] = {{"io.k8s.api.scheduling.v1.PriorityClass", check_priority_class}};

}  // namespace

std::span<const NamedValidationRule> priority_class_rules() { return kPriorityClassChecks; }

void check_priority_class_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::PriorityClass priority(now), old(before);
  if (priority.value() != old.value()) out.forbidden("value", "may not be changed in an update.");
  check_immutable(out, "preemptionPolicy", priority.preemption_policy(), old.preemption_policy());
}

}  // namespace coracle::schema
