// SPDX-License-Identifier: Apache-2.0
// See disruption.h.
#include "daemon/quota/disruption.h"

#include "store/kinds/meta/conditions.h"
#include "store/object/object.h"
#include "store/object/selector_cache.h"
#include "store/schema/views.h"

namespace coracle::quota {
namespace {

constexpr std::string_view kType = "DisruptionAllowed";

void set_condition(json::value& budget, std::string_view status, std::string_view reason, std::string_view message,
                   WallTime now) {
  json::object& condition = make_condition(make_array(budget, "status.conditions"), kType);
  const json::value* before = condition.if_contains("status");
  if (!before || *before != json::value(status)) condition["lastTransitionTime"] = format_time(now);
  condition["status"] = status;
  condition["reason"] = reason;
  condition["message"] = message;
  condition["observedGeneration"] = view::PodDisruptionBudget(budget).status().observed_generation();
}

}  // namespace

bool covers(const Object& budget, const Object& pod) {
  if (budget.ns() != pod.ns()) return false;
  auto selector = selector_in_spec(budget);
  return selector && selector->matches(pod);
}

const json::value* allowed_condition(const json::value& budget) { return find_condition(budget, kType); }

void set_allowed_condition(json::value& budget, WallTime now) {
  bool allowed = view::PodDisruptionBudget(budget).status().disruptions_allowed() > 0;
  set_condition(budget, allowed ? "True" : "False", allowed ? "SufficientPods" : "InsufficientPods", "", now);
}

void set_sync_failed(json::value& budget, std::string_view why, WallTime now) {
  set_condition(budget, "False", "SyncFailed", why, now);
}

}  // namespace coracle::quota
