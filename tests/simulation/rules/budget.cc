// SPDX-License-Identifier: Apache-2.0
// Quotas: no pod is made beyond one. Budgets: at rest, a budget says how many pods are healthy, how many should be, and how many
// may go.
// Source: Kubernetes "Resource Quotas"; "Disruptions"; policy/v1 PodDisruptionBudgetStatus.
#include <algorithm>

#include "store/object/quantity.h"
#include "store/object/selector.h"
#include "tests/simulation/world.h"

namespace coracle::simulation {
namespace {

bool covers(const Object& budget, const Object& pod) {
  auto selector = LabelSelector::from_json(find(budget.json(), "spec.selector"));
  return pod.ns() == budget.ns() && selector && selector->matches(pod);
}

int64_t pods_of(const json::value& quota, std::string_view path) {
  const json::value* value = find(quota, path);
  auto amount = value ? Quantity::from_json(*value) : Result<Quantity>(Error(Code::not_found, ""));
  return amount ? amount->value() : -1;
}

class BudgetRule : public Rule {
 public:
  void after(const World& world, Actor, const Change& change) override {
    if (!(*change.kind == kPod) || change.before) return;
    for (const ObjectPtr& quota : world.all(kResourceQuota, change.after->ns())) {
      int64_t hard = pods_of(quota->json(), "spec.hard.pods"), there = count(world, quota->ns());
      int64_t enforced = pods_of(quota->json(), "status.hard.pods");  // what admission goes by; absent until somebody has counted
      if (enforced >= 0 && enforced <= hard && there > hard)
        world.violated("quota: " + change.after->key().text() + " is the " + std::to_string(there) + ". of " + std::to_string(hard));
    }
  }

  void at_rest(const World& world) override {
    for (const ObjectPtr& quota : world.all(kResourceQuota)) {
      int64_t told = pods_of(quota->json(), "status.used.pods"), there = count(world, quota->ns());
      if (told != there) world.violated("quota: " + describe(*quota) + " says " + std::to_string(told) + " pods of " + std::to_string(there));
    }
    for (const ObjectPtr& budget : world.all(kPodDisruptionBudget)) {
      int64_t healthy = 0;
      for (const ObjectPtr& pod : world.all(kPod, budget->ns())) healthy += covers(*budget, *pod) && active(*pod) && ready(*pod);
      auto status = [&](const char* name) { return get_int(budget->json(), std::string("status.") + name); };
      std::string name = "budget: " + describe(*budget) + ": ";
      const json::array& conditions = get_array(budget->json(), "status.conditions");
      bool failed = std::any_of(conditions.begin(), conditions.end(), [](const json::value& c) { return get_string(c, "reason") == "SyncFailed"; });
      if (status("observedGeneration") != get_int(budget->json(), "metadata.generation")) return world.violated(name + "has not observed its generation");
      if (failed) {
        if (status("disruptionsAllowed") != 0) world.violated(name + "failed, and allows disruptions");
        continue;
      }
      if (status("currentHealthy") != healthy)
        return world.violated(name + "says " + std::to_string(status("currentHealthy")) + " healthy, not " + std::to_string(healthy));
      int64_t allowed = status("expectedPods") > 0 ? std::max<int64_t>(0, healthy - status("desiredHealthy")) : 0;
      if (status("disruptionsAllowed") != allowed) return world.violated(name + "allows " + std::to_string(status("disruptionsAllowed")) + ", not " + std::to_string(allowed));
      if (!get_object(budget->json(), "status.disruptedPods").empty()) return world.violated(name + "still waits for pods to go");
    }
  }

 private:
  static int64_t count(const World& world, const std::string& ns) {
    int64_t there = 0;
    for (const ObjectPtr& pod : world.all(kPod, ns)) there += !finished(*pod) && !overdue(world, *pod);
    return there;
  }

  // Its grace is over: it is charged no more, for its node may be lost.
  static bool overdue(const World& world, const Object& pod) {
    auto deleted = parse_time(get_string(pod.json(), "metadata.deletionTimestamp"));
    return deleted && *deleted + std::chrono::seconds(get_int(pod.json(), "metadata.deletionGracePeriodSeconds")) < world.clock.now();
  }
};

}  // namespace

std::unique_ptr<Rule> budget_rule() { return std::make_unique<BudgetRule>(); }

}  // namespace coracle::simulation
