// SPDX-License-Identifier: Apache-2.0
// Quotas: no pod is created beyond one. Budgets: an eviction is charged to the pod's budget, which permits it and has observed
// its current spec; and all evictions since the last count leave as many healthy pods as the budget requires, of those that the
// counting daemon could assume healthy. An evicted pod only counts as healthy again if it is still there after two minutes.
// Deletions by other means, such as rollouts and scaling, are not limited by budgets. At rest, a budget's status has the numbers
// of healthy and desired pods and of allowed disruptions.
// Source: Kubernetes "Resource Quotas"; "Disruptions"; policy/v1 PodDisruptionBudgetStatus.
#include <algorithm>
#include <set>

#include "store/object/quantity.h"
#include "store/object/selector.h"
#include "tests/simulation/cluster_state.h"

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

bool is_evicted(const Object& pod) {
  return condition(pod, "DisruptionTarget", "status") == "True" &&
         condition(pod, "DisruptionTarget", "reason") == "EvictionByEvictionAPI";
}

int64_t number(const Object& budget, const char* name) { return get_int(budget.json(), std::string("status.") + name); }

class BudgetRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (*change.kind == kPodDisruptionBudget && change.before && change.after) {
      if (actor == Actor::daemon) note_count(cluster_state, *change.after);
      else check_charge(cluster_state, *change.before, *change.after);
    }
    if (*change.kind == kPodDisruptionBudget && !change.after) counted_.erase(change.before->uid());
    if (*change.kind == kPod && change.before && change.after && is_evicted(*change.after) && !is_evicted(*change.before))
      check_eviction(cluster_state, *change.before);
    if (!(*change.kind == kPod) || change.before) return;
    for (const ObjectPtr& quota : cluster_state.all(kResourceQuota, change.after->ns())) {
      int64_t hard = pods_of(quota->json(), "spec.hard.pods"), there = count(cluster_state, quota->ns());
      int64_t enforced = pods_of(quota->json(), "status.hard.pods");  // admission uses the status; absent before the first count
      if (enforced >= 0 && enforced <= hard && there > hard)
        cluster_state.violated("quota: " + change.after->key().text() + " is the " + std::to_string(there) + ". of " +
                               std::to_string(hard));
    }
  }

  void after_power_loss(const ClusterState& cluster_state) override {
    counted_.clear();
    for (auto& [uid, since] : std::map(evicted_)) {
      std::vector<ObjectPtr> pods = cluster_state.all(kPod);
      bool stays =
          std::any_of(pods.begin(), pods.end(), [&](const ObjectPtr& pod) { return pod->uid() == uid && !is_evicted(*pod); });
      if (stays) evicted_.erase(uid);
    }
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& quota : cluster_state.all(kResourceQuota)) {
      int64_t told = pods_of(quota->json(), "status.used.pods"), there = count(cluster_state, quota->ns());
      if (told != there)
        cluster_state.violated("quota: " + describe(*quota) + " says " + std::to_string(told) + " pods of " +
                               std::to_string(there));
    }
    for (const ObjectPtr& budget : cluster_state.all(kPodDisruptionBudget)) {
      int64_t healthy = 0;
      for (const ObjectPtr& pod : cluster_state.all(kPod, budget->ns()))
        healthy += covers(*budget, *pod) && active(*pod) && ready(*pod);
      auto status = [&](const char* name) { return get_int(budget->json(), std::string("status.") + name); };
      std::string name = "budget: " + describe(*budget) + ": ";
      const json::array& conditions = get_array(budget->json(), "status.conditions");
      bool failed = std::any_of(conditions.begin(), conditions.end(),
                                [](const json::value& c) { return get_string(c, "reason") == "SyncFailed"; });
      if (status("observedGeneration") != get_int(budget->json(), "metadata.generation"))
        return cluster_state.violated(name + "has not observed its generation");
      if (failed) {
        if (status("disruptionsAllowed") != 0) cluster_state.violated(name + "failed, and allows disruptions");
        continue;
      }
      if (status("currentHealthy") != healthy)
        return cluster_state.violated(name + "says " + std::to_string(status("currentHealthy")) + " healthy, not " +
                                      std::to_string(healthy));
      int64_t allowed = status("expectedPods") > 0 ? std::max<int64_t>(0, healthy - status("desiredHealthy")) : 0;
      if (status("disruptionsAllowed") != allowed)
        return cluster_state.violated(name + "allows " + std::to_string(status("disruptionsAllowed")) + ", not " +
                                      std::to_string(allowed));
      if (!get_object(budget->json(), "status.disruptedPods").empty())
        return cluster_state.violated(name + "still waits for pods to go");
    }
  }

 private:
  // The daemon has counted the budget's pods: the result cannot exceed the number that it could assume healthy.
  void note_count(const ClusterState& cluster_state, const Object& budget) {
    if (condition(budget, "DisruptionAllowed", "reason") == "SyncFailed") return;
    std::set<std::string>& healthy = counted_[budget.uid()];
    healthy.clear();
    for (const ObjectPtr& pod : cluster_state.believable_in(kPod, budget.ns())) {
      auto evicted = evicted_.find(pod->uid());
      bool goes = evicted != evicted_.end() && cluster_state.clock.now() <= evicted->second + std::chrono::minutes(2);
      if (covers(budget, *pod) && !pod->deleting() && ready(*pod) && !goes) healthy.insert(pod->uid());
    }
    std::string name = "budget: " + describe(budget) + ": ";
    if (number(budget, "currentHealthy") > int64_t(healthy.size()))
      return cluster_state.violated(name + "counts " + std::to_string(number(budget, "currentHealthy")) +
                                    " healthy, and there cannot be more than " + std::to_string(healthy.size()));
    const json::value* least = find(budget.json(), "spec.minAvailable");
    bool current = number(budget, "observedGeneration") == get_int(budget.json(), "metadata.generation");
    if (current && least && least->is_int64() && number(budget, "desiredHealthy") != least->get_int64())
      return cluster_state.violated(name + "demands another number than is wanted of it");
    if (number(budget, "disruptionsAllowed") >
        std::max<int64_t>(0, number(budget, "currentHealthy") - number(budget, "desiredHealthy")))
      cluster_state.violated(name + "allows more than there are to spare");
  }

  void check_charge(const ClusterState& cluster_state, const Object& before, const Object& after) {
    for (const auto& [pod, since] : get_object(after.json(), "status.disruptedPods")) {
      const json::value* charged = get_object(before.json(), "status.disruptedPods").if_contains(pod);
      bool anew = since == json::value(format_time(cluster_state.clock.now())) &&
                  number(after, "disruptionsAllowed") < number(before, "disruptionsAllowed");
      if (charged && *charged == since && !anew) continue;  // a later pod with this name is charged anew
      std::string name = "budget: " + describe(after) + ": ";
      ObjectPtr there = cluster_state.find(kPod, {after.ns(), std::string(pod)});
      if (!there && charged) continue;  // the charge is for another pod
      if (!there) return cluster_state.violated(name + "charged for a pod that is not there");
      evicted_[there->uid()] = cluster_state.clock.now();
      if (number(before, "observedGeneration") < get_int(before.json(), "metadata.generation"))
        return cluster_state.violated(name + "charged before it was counted");
      if (number(before, "disruptionsAllowed") < 1 ||
          number(after, "disruptionsAllowed") != number(before, "disruptionsAllowed") - 1)
        return cluster_state.violated(name + "lets " + there->name() + " go, and allows nothing");
      auto counted = counted_.find(after.uid());
      if (counted == counted_.end()) continue;
      counted->second.erase(there->uid());
      if (int64_t(counted->second.size()) < number(before, "desiredHealthy"))
        return cluster_state.violated(name + "without " + there->name() + " there are at most " +
                                      std::to_string(counted->second.size()) + " healthy of " +
                                      std::to_string(number(before, "desiredHealthy")));
    }
  }

  // An evicted pod is charged, or needs no budget: it has not started, has ended, is terminating, or its budget permits evicting
  // unhealthy pods.
  void check_eviction(const ClusterState& cluster_state, const Object& pod) const {
    if (finished(pod) || pod.deleting() || get_string(pod.json(), "status.phase") == "Pending") return;
    for (const ObjectPtr& budget : cluster_state.all(kPodDisruptionBudget, pod.ns())) {
      if (!covers(*budget, pod) || evicted_.contains(pod.uid())) continue;
      bool enough =
          number(*budget, "desiredHealthy") > 0 && number(*budget, "currentHealthy") >= number(*budget, "desiredHealthy");
      bool any = get_string(budget->json(), "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow";
      if (ready(pod) || !(enough || any))
        return cluster_state.violated("budget: " + describe(*budget) + ": " + pod.name() + " was evicted without asking it");
    }
  }

  static int64_t count(const ClusterState& cluster_state, const std::string& ns) {
    int64_t there = 0;
    for (const ObjectPtr& pod : cluster_state.all(kPod, ns)) there += !finished(*pod) && !overdue(cluster_state, *pod);
    return there;
  }

  // Its grace period is over: it is no longer charged, since its node may be lost.
  static bool overdue(const ClusterState& cluster_state, const Object& pod) {
    auto deleted = parse_time(get_string(pod.json(), "metadata.deletionTimestamp"));
    return deleted && *deleted + std::chrono::seconds(get_int(pod.json(), "metadata.deletionGracePeriodSeconds")) <
                          cluster_state.clock.now();
  }

  std::map<std::string, std::set<std::string>>
      counted_;  // by the budget's uid: the pods that could be assumed healthy, minus those evicted since
  std::map<std::string, WallTime> evicted_;  // by uid: pods charged to a budget, with the time
};

}  // namespace

std::unique_ptr<Rule> budget_rule() { return std::make_unique<BudgetRule>(); }

}  // namespace coracle::simulation
